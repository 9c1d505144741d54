// What the answers of commands that predict have in common.
#pragma once

#include <vector>

#include "cli/device_options.h"
#include "cli/model_source.h"
#include "report/prediction.h"
#include "tensor/policy.h"

namespace ullage::cli {

// A prediction's assumptions in the order in which they are told: what was resolved, the model's, the card's, and the
// engine's that `out` has already. Warnings: the engine's, what was resolved, the model's.
struct Told {
  std::vector<report::Message> assumptions;
  std::vector<report::Message> warnings;
};
void tell(report::Prediction& out, Told resolved, const LoadedModel& loaded, std::vector<report::Message> of_device);

void append(std::vector<report::Message>& to, std::vector<report::Message> more);

// What decides which kernels run; a card that nobody knows is one that runs them all.
tensor::Capability capability_of(const ChosenDevice& device);
tensor::Capability capability_of(const hardware::Gpu& gpu);

// --require-fit wants a card.
Expected<void> check_require_fit(const Arguments& arguments);

}  // namespace ullage::cli
