// What the answers of commands that predict have in common.
#pragma once

#include <vector>

#include "cli/device_options.h"
#include "report/messages.h"
#include "tensor/policy.h"

namespace ullage::cli {

void append(std::vector<report::Message>& to, std::vector<report::Message> more);

// What decides which kernels run; a card that nobody knows is one that runs them all.
tensor::Capability capability_of(const ChosenDevice& device);
tensor::Capability capability_of(const hardware::Gpu& gpu);

// --require-fit wants a card.
Expected<void> check_require_fit(const Arguments& arguments);

}  // namespace ullage::cli
