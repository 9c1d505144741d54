// --gpu and what goes with it.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "cli/streams.h"
#include "hardware/gpu.h"
#include "report/messages.h"

namespace ullage::cli {

struct ChosenDevice {
  std::optional<hardware::Gpu> gpu;  // none: a card without limit
  std::int64_t used_bytes = 0;       // of it, by others; its usable bytes are without them
  std::vector<report::Message> assumptions;
};

// One card; several and unequal ones are not in this version. "local" and "local:2" are the machine's own first and
// third card; what others hold of it now counts as used unless --used says otherwise.
Expected<ChosenDevice> choose_device(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
