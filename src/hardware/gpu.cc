#include "hardware/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace ullage::hardware {
namespace {

Support since(const Gpu& gpu, ComputeCapability first, const std::optional<double>& rate) {
  if (gpu.compute_capability) return *gpu.compute_capability >= first ? Support::yes : Support::no;
  return rate ? Support::yes : Support::unknown;
}

}  // namespace

bool is_recalled(const Gpu& gpu, std::string_view cell) {
  return std::find(gpu.recalled.begin(), gpu.recalled.end(), cell) != gpu.recalled.end();
}

std::optional<ComputeCapability> parse_compute_capability(std::string_view text) {
  ComputeCapability out;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, out.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, out.minor);
  if (minor.ec != std::errc{} || minor.ptr != end || out.major < 0 || out.minor < 0) return std::nullopt;
  return out;
}

std::string to_string(ComputeCapability capability) { return fmt::format("{}.{}", capability.major, capability.minor); }

Support supports_bf16(const Gpu& gpu) { return since(gpu, kBf16Since, gpu.peak.bf16_tflops); }

Support supports_fp8(const Gpu& gpu) { return since(gpu, kFp8Since, gpu.peak.fp8_tflops); }

Support supports_flash_attention_2(const Gpu& gpu) { return since(gpu, kFlashAttention2Since, std::nullopt); }

Support has_nvlink(const Gpu& gpu) {
  return gpu.vendor == "NVIDIA" && gpu.link_bytes_per_s ? Support::yes : Support::no;
}

void set_usable(Gpu& gpu, std::int64_t bytes) {
  gpu.usable_bytes = bytes;
  gpu.usable_range_bytes = {bytes, bytes};
  gpu.usable_basis = UsableBasis::given;
  gpu.usable_source.clear();
}

void take_used(Gpu& gpu, std::int64_t bytes) {
  for (std::int64_t* left : {&gpu.usable_bytes, &gpu.usable_range_bytes.low, &gpu.usable_range_bytes.high}) {
    *left = std::max<std::int64_t>(0, *left - bytes);
  }
}

}  // namespace ullage::hardware
