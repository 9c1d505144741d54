#include "cli/device_options.h"

#include <fmt/core.h>

#include "base/bytes.h"
#include "hardware/catalogue.h"

namespace ullage::cli {
namespace {

Expected<void> adjust(hardware::Gpu& gpu, const Arguments& arguments, ChosenDevice& device) {
  const auto memory = arguments.bytes("--gpu-memory");
  if (!memory) return tl::unexpected<Error>(memory.error());
  const auto used = arguments.bytes("--used");
  if (!used) return tl::unexpected<Error>(used.error());
  if (*memory && **memory == 0)
    return fail(ErrorCode::invalid_argument, "--gpu-memory", "a card without memory fits nothing");
  if (*memory) hardware::set_usable(gpu, **memory);
  if (*used && **used >= gpu.usable_bytes) {
    return fail(ErrorCode::invalid_argument, "--used",
                fmt::format("others cannot hold {} of a card that offers {}", format_bytes(**used),
                            format_bytes(gpu.usable_bytes)));
  }
  if (*used) {
    hardware::take_used(gpu, **used);
    device.used_bytes = **used;
    device.assumptions.push_back({report::Text::assume_used, {{"bytes", report::Bytes{**used}}}});
  }
  return {};
}

Expected<void> check_alone(const Arguments& arguments) {
  for (const std::string_view option : {"--gpu-memory", "--used"}) {
    if (arguments.has(option))
      return fail(ErrorCode::invalid_argument, std::string(option), "says something about a card; name it with --gpu");
  }
  return {};
}

}  // namespace

Expected<ChosenDevice> choose_device(const Arguments& arguments) {
  const auto total = arguments.integer("--gpus", 1, 1, hardware::kMostDevices);
  if (!total) return tl::unexpected<Error>(total.error());
  if (*total != 1) return not_in_this_version("--gpus", "training on several GPUs");
  ChosenDevice out;
  if (!arguments.has("--gpu")) {
    if (auto alone = check_alone(arguments); !alone) return tl::unexpected<Error>(alone.error());
    return out;
  }
  const std::string name = arguments.text("--gpu");
  if (name == "local") return not_in_this_version("--gpu", "asking the driver for 'local'");
  const auto devices = hardware::find_devices(name, arguments.has("--gpus") ? std::optional(*total) : std::nullopt);
  if (!devices) return tl::unexpected<Error>(devices.error());
  if (devices->count() != 1) return not_in_this_version("--gpu", "training on several GPUs");
  out.gpu = devices->groups.front().gpu;
  if (auto adjusted = adjust(*out.gpu, arguments, out); !adjusted) return tl::unexpected<Error>(adjusted.error());
  return out;
}

}  // namespace ullage::cli
