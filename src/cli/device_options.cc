#include "cli/device_options.h"

#include <fmt/core.h>

#include <charconv>
#include <system_error>

#include "base/bytes.h"
#include "hardware/catalogue.h"

namespace ullage::cli {
namespace {

constexpr std::int64_t kMostCards = 64;  // of one process

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

// The digits after "local:"; "local" alone is the first card.
Expected<std::size_t> local_index(std::string_view name, std::size_t count) {
  std::size_t index = 0;
  if (name != "local") {
    const std::string_view digits = name.substr(std::string_view("local:").size());
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (fault != std::errc{} || end != digits.data() + digits.size()) index = count;
  }
  if (index < count) return index;
  return fail(
      ErrorCode::invalid_argument, "--gpu",
      fmt::format("'{}' is no card of this machine; they are local:0 to local:{}", name.substr(0, 40), count - 1));
}

Expected<ChosenDevice> choose_local(std::string_view name, const Arguments& arguments, const Files& files) {
  const auto found = files.devices();
  if (!found) return tl::unexpected<Error>(found.error());
  const auto index = local_index(name, found->size());
  if (!index) return tl::unexpected<Error>(index.error());
  const hardware::LocalDevice& local = (*found)[*index];
  auto gpu = hardware::describe(local);
  if (!gpu) return tl::unexpected<Error>(gpu.error());
  ChosenDevice out;
  out.gpu = std::move(*gpu);
  out.assumptions.push_back({report::Text::assume_local,
                             {{"index", static_cast<std::int64_t>(*index)},
                              {"count", static_cast<std::int64_t>(found->size())},
                              {"name", local.name},
                              {"driver", local.driver}}});
  if (!arguments.has("--used") && local.used_bytes > 0) {
    hardware::take_used(*out.gpu, local.used_bytes);
    out.used_bytes = local.used_bytes;
    out.assumptions.push_back({report::Text::assume_local_used, {{"bytes", report::Bytes{local.used_bytes}}}});
  }
  return out;
}

Expected<ChosenDevice> choose_named(const std::string& name, const Arguments& arguments, std::int64_t total) {
  const auto devices = hardware::find_devices(name, arguments.has("--gpus") ? std::optional(total) : std::nullopt);
  if (!devices) return tl::unexpected<Error>(devices.error());
  if (devices->count() != 1) return not_in_this_version("--gpu", "training on several GPUs");
  ChosenDevice out;
  out.gpu = devices->groups.front().gpu;
  return out;
}

hardware::Gpu nameless_card() {
  hardware::Gpu out;
  out.id = "unnamed";
  out.name = "GPU";
  return out;
}

bool is_local(std::string_view name) { return name == "local" || name.substr(0, 6) == "local:"; }

Expected<void> check_alone(const Arguments& arguments) {
  for (const std::string_view option : {"--gpu-memory", "--used"}) {
    if (arguments.has(option))
      return fail(ErrorCode::invalid_argument, std::string(option), "says something about a card; name it with --gpu");
  }
  return {};
}

// Several, each with what --gpu-memory and --used say of it.
Expected<ChosenDevices> choose_several(const hardware::DeviceSet& set, const Arguments& arguments) {
  ChosenDevices out;
  out.count = set.count();
  if (out.count > kMostCards)
    return fail(ErrorCode::too_large, "--gpus",
                fmt::format("{} cards; one process sees {} at most", out.count, kMostCards));
  for (const hardware::DeviceGroup& group : set.groups) {
    ChosenDevice one;
    one.gpu = group.gpu;
    if (auto adjusted = adjust(*one.gpu, arguments, one); !adjusted) return tl::unexpected<Error>(adjusted.error());
    out.used_bytes = one.used_bytes;
    if (out.gpus.empty()) out.assumptions = std::move(one.assumptions);
    out.gpus.insert(out.gpus.end(), static_cast<std::size_t>(group.count), *one.gpu);
  }
  return out;
}

}  // namespace

Expected<ChosenDevices> choose_devices(const Arguments& arguments, const Files& files) {
  const auto total = arguments.integer("--gpus", 1, 1, kMostCards);
  if (!total) return tl::unexpected<Error>(total.error());
  const std::string name = arguments.text("--gpu");
  if (!arguments.has("--gpu") && *total > 1)
    return check_alone(arguments).map([&] { return ChosenDevices{{}, *total, 0, {}}; });
  if (is_local(name) || !arguments.has("--gpu")) {
    if (*total > 1) return not_in_this_version("--gpus", "several of this machine's own cards");
    return choose_device(arguments, files).map([](ChosenDevice one) {
      ChosenDevices out{{}, 1, one.used_bytes, std::move(one.assumptions)};
      if (one.gpu) out.gpus.push_back(*std::move(one.gpu));
      return out;
    });
  }
  const auto set = hardware::find_devices(name, arguments.has("--gpus") ? std::optional(*total) : std::nullopt);
  if (!set) return tl::unexpected<Error>(set.error());
  return choose_several(*set, arguments);
}

Expected<void> check_interconnect(const Arguments& arguments, const std::vector<hardware::Gpu>& gpus) {
  if (arguments.text("--interconnect") != "nvlink") return {};
  if (gpus.empty())
    return fail(ErrorCode::invalid_argument, "--interconnect", "is between cards; name them with --gpu");
  for (const hardware::Gpu& gpu : gpus) {
    if (hardware::has_nvlink(gpu) != hardware::Support::no) continue;
    const std::string bus = gpu.pcie_generation ? fmt::format("PCIe {}.0", *gpu.pcie_generation) : std::string("PCIe");
    return fail(ErrorCode::invalid_argument, "--interconnect",
                fmt::format("{} has no NVLink: its cards reach each other over {} alone; use --interconnect pcie",
                            gpu.name, bus));
  }
  return {};
}

Expected<ChosenDevice> choose_equal_devices(const Arguments& arguments, const Files& files) {
  const auto total = arguments.integer("--gpus", 1, 1, hardware::kMostDevices);
  if (!total) return tl::unexpected<Error>(total.error());
  ChosenDevice out;
  if (arguments.has("--gpus")) out.named_count = *total;
  if (!arguments.has("--gpu")) {
    if (!arguments.has("--gpu-memory")) return check_alone(arguments).map([&] { return out; });
    out.gpu = nameless_card();
  } else if (is_local(arguments.text("--gpu"))) {
    auto local = choose_local(arguments.text("--gpu"), arguments, files);
    if (!local) return local;
    const std::optional<std::int64_t> count = out.named_count;
    out = *std::move(local);
    out.named_count = count;
  } else {
    const auto devices =
        hardware::find_devices(arguments.text("--gpu"), arguments.has("--gpus") ? std::optional(*total) : std::nullopt);
    if (!devices) return tl::unexpected<Error>(devices.error());
    if (devices->groups.size() != 1) return not_in_this_version("--gpu", "serving on unequal GPUs");
    out.gpu = devices->groups.front().gpu;
    if (devices->count() > 1) out.named_count = devices->count();
  }
  if (auto adjusted = adjust(*out.gpu, arguments, out); !adjusted) return tl::unexpected<Error>(adjusted.error());
  hardware::take_used(*out.gpu, -out.used_bytes);
  return out;
}

Expected<ChosenDevice> choose_device(const Arguments& arguments, const Files& files) {
  const auto total = arguments.integer("--gpus", 1, 1, hardware::kMostDevices);
  if (!total) return tl::unexpected<Error>(total.error());
  if (*total != 1) return not_in_this_version("--gpus", "training on several GPUs");
  if (!arguments.has("--gpu")) return check_alone(arguments).map([] { return ChosenDevice{}; });
  const std::string name = arguments.text("--gpu");
  auto out = is_local(name) ? choose_local(name, arguments, files) : choose_named(name, arguments, *total);
  if (!out) return out;
  if (auto adjusted = adjust(*out->gpu, arguments, *out); !adjusted) return tl::unexpected<Error>(adjusted.error());
  return out;
}

}  // namespace ullage::cli
