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
  std::optional<std::int64_t> named_count;  // of equal ones, where a count was given
};

// One card; several and unequal ones are not in this version. "local" and "local:2" are the machine's own first and
// third card; what others hold of it now counts as used unless --used says otherwise.
Expected<ChosenDevice> choose_device(const Arguments& arguments, const Files& files);

// The cards of a run that takes several, in the order of their numbers; none where no card is named.
struct ChosenDevices {
  std::vector<hardware::Gpu> gpus;
  std::int64_t count = 1;
  std::int64_t used_bytes = 0;  // of each, by others
  std::vector<report::Message> assumptions;
};

// "8xh100", "rtx-4090,rtx-3090", one kind with --gpus N, or --gpus alone. Of this machine's own cards one.
Expected<ChosenDevices> choose_devices(const Arguments& arguments, const Files& files);

// --interconnect: refuses a link that the cards do not have, with the reason. Nothing where it was not given.
Expected<void> check_interconnect(const Arguments& arguments, const std::vector<hardware::Gpu>& gpus);

// Any number of equal cards, for engines that share them out by their own flags. The usable bytes are those of an empty
// card, whatever others hold. --gpu-memory alone is a card of that size of which nothing else is known.
Expected<ChosenDevice> choose_equal_devices(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
