// `ullage gpus`: cards that pass a filter, in the order asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "hardware/catalogue.h"
#include "hardware/gpu.h"

namespace ullage::hardware {

// All that are set must hold. Texts ignore case.
struct GpuFilter {
  std::string text;                              // part of the id, an alias or the name
  std::string vendor;                            // the whole vendor
  std::string architecture;                      // part of the architecture
  std::optional<std::int64_t> min_memory_bytes;  // of what the datasheet says
  std::optional<std::int64_t> max_memory_bytes;
  std::optional<ComputeCapability> min_compute_capability;
  std::optional<int> min_year;
  bool bf16 = false;  // known to have it
  bool fp8 = false;
  bool nvlink = false;
};

// Numbers sort from the largest down, absent ones last; ties and names by id.
enum class GpuSort { id, memory, usable, bandwidth, bf16, year, tdp };

// Reads "memory" and the other names above; "name" is "id".
Expected<GpuSort> parse_gpu_sort(std::string_view text, std::string_view where);

bool passes(const Gpu& gpu, const GpuFilter& filter);

// Parses every row (some milliseconds).
Expected<std::vector<Gpu>> list_gpus(const GpuFilter& filter = {}, GpuSort order = GpuSort::id,
                                     const GpuCatalogue& catalogue = built_in_gpus());

}  // namespace ullage::hardware
