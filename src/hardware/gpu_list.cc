#include "hardware/gpu_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/lines.h"
#include "hardware/gpu_row.h"
#include "hardware/usable_memory.h"

namespace ullage::hardware {
namespace {

constexpr std::array<std::pair<std::string_view, GpuSort>, 8> kSorts{{
    {"id", GpuSort::id},
    {"name", GpuSort::id},
    {"memory", GpuSort::memory},
    {"usable", GpuSort::usable},
    {"bandwidth", GpuSort::bandwidth},
    {"bf16", GpuSort::bf16},
    {"year", GpuSort::year},
    {"tdp", GpuSort::tdp},
}};

bool has_text(const Gpu& gpu, std::string_view text) {
  if (contains_ignoring_case(gpu.id, text) || contains_ignoring_case(gpu.name, text)) return true;
  return std::any_of(gpu.aliases.begin(), gpu.aliases.end(),
                     [&](const std::string& alias) { return contains_ignoring_case(alias, text); });
}

// What the card is ordered by; absent values stand last.
double sort_value(const Gpu& gpu, GpuSort order) {
  switch (order) {
    case GpuSort::id: return 0;
    case GpuSort::memory: return static_cast<double>(gpu.datasheet_bytes);
    case GpuSort::usable: return static_cast<double>(gpu.usable_bytes);
    case GpuSort::bandwidth: return gpu.memory_bandwidth_bytes_per_s.value_or(-1);
    case GpuSort::bf16: return gpu.peak.bf16_tflops.value_or(-1);
    case GpuSort::year: return gpu.year.value_or(-1);
    case GpuSort::tdp: return gpu.tdp_w.value_or(-1);
  }
  return 0;
}

bool has_size(const Gpu& gpu, const GpuFilter& filter) {
  if (filter.min_memory_bytes && gpu.datasheet_bytes < *filter.min_memory_bytes) return false;
  return !filter.max_memory_bytes || gpu.datasheet_bytes <= *filter.max_memory_bytes;
}

bool has_abilities(const Gpu& gpu, const GpuFilter& filter) {
  if (filter.min_compute_capability &&
      (!gpu.compute_capability || *gpu.compute_capability < *filter.min_compute_capability)) {
    return false;
  }
  if (filter.bf16 && supports_bf16(gpu) != Support::yes) return false;
  if (filter.fp8 && supports_fp8(gpu) != Support::yes) return false;
  return !filter.nvlink || has_nvlink(gpu) == Support::yes;
}

}  // namespace

Expected<GpuSort> parse_gpu_sort(std::string_view text, std::string_view where) {
  std::string names;
  for (const auto& [name, order] : kSorts) {
    if (compare_ignoring_case(name, text) == 0) return order;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return fail(ErrorCode::invalid_argument, std::string(where),
              fmt::format("cannot sort by '{}'; choose one of {}", text.substr(0, 60), names));
}

bool passes(const Gpu& gpu, const GpuFilter& filter) {
  if (!filter.vendor.empty() && compare_ignoring_case(gpu.vendor, filter.vendor) != 0) return false;
  if (!contains_ignoring_case(gpu.architecture, filter.architecture)) return false;
  if (filter.min_year && gpu.year.value_or(0) < *filter.min_year) return false;
  return has_text(gpu, filter.text) && has_size(gpu, filter) && has_abilities(gpu, filter);
}

Expected<std::vector<Gpu>> list_gpus(const GpuFilter& filter, GpuSort order, const GpuCatalogue& catalogue) {
  const auto rules = parse_usable_rules(catalogue.usable_memory);
  if (!rules) return tl::unexpected<Error>(rules.error());
  std::vector<Gpu> out;
  std::optional<Error> error;
  for_each_line(catalogue.gpus, [&](std::string_view line) {
    auto gpu = parse_gpu_row(line, *rules);
    if (!gpu) error = gpu.error();
    else if (passes(*gpu, filter)) out.push_back(std::move(*gpu));
  });
  if (error) return tl::unexpected<Error>(*error);
  std::stable_sort(out.begin(), out.end(),
                   [order](const Gpu& a, const Gpu& b) { return sort_value(a, order) > sort_value(b, order); });
  return out;
}

}  // namespace ullage::hardware
