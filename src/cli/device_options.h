// --gpu and what goes with it.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "hardware/gpu.h"
#include "report/messages.h"

namespace ullage::cli {

struct ChosenDevice {
  std::optional<hardware::Gpu> gpu;  // none: a card without limit
  std::int64_t used_bytes = 0;       // of it, by others; its usable bytes are without them
  std::vector<report::Message> assumptions;
};

// One card; several and unequal ones are not in this version.
Expected<ChosenDevice> choose_device(const Arguments& arguments);

}  // namespace ullage::cli
