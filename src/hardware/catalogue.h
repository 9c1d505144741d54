// Finding cards in data/gpus.jsonl by id, alias or the name that the driver shows.
//
// Names are found by looking at the beginning of each line; only the wanted line is parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "hardware/gpu.h"

namespace ullage::hardware {

// The texts that functions below read. Lines of `gpus` are sorted by id.
struct GpuCatalogue {
  std::string_view gpus;
  std::string_view usable_memory;
};

// What was compiled in.
GpuCatalogue built_in_gpus();

// `name` is an id ("h100-sxm-80gb"), an alias ("h100") or a product name ("NVIDIA GeForce RTX 4090"); case, blanks,
// underscores and hyphens do not matter in it. Unknown: not_found with the nearest names; `where` is the option's name.
Expected<Gpu> find_gpu(std::string_view name, std::string_view where = "--gpu",
                       const GpuCatalogue& catalogue = built_in_gpus());

// Equal devices, side by side.
struct DeviceGroup {
  Gpu gpu;
  std::int64_t count = 1;
};

// All devices of a run, in the order in which they were named.
struct DeviceSet {
  std::vector<DeviceGroup> groups;

  std::int64_t count() const;
};

inline constexpr std::int64_t kMostDevices = 1'000'000;

// Reads "h100", "8xh100", "rtx-4090,rtx-3090", "2xrtx-4090,rtx-3090". `total` is --gpus: it multiplies one card that
// has no count in front, and must agree with the counts otherwise.
Expected<DeviceSet> find_devices(std::string_view text, std::optional<std::int64_t> total = std::nullopt,
                                 std::string_view where = "--gpu", const GpuCatalogue& catalogue = built_in_gpus());

}  // namespace ullage::hardware
