#include "speed/roofline.h"

#include <algorithm>

namespace ullage::speed {
namespace {

constexpr double kTera = 1e12;

std::optional<double> tflops_of(const hardware::PeakRates& peak, DType dtype) {
  switch (dtype) {
    case DType::bf16: return peak.bf16_tflops;
    case DType::f16: return peak.fp16_tflops;
    case DType::f32: return peak.fp32_tflops;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Rates> rates_of(const hardware::Gpu& gpu, DType dtype) {
  const std::optional<double> tflops = tflops_of(gpu.peak, dtype);
  if (!tflops || !gpu.memory_bandwidth_bytes_per_s) return std::nullopt;
  return Rates{*tflops * kTera, *gpu.memory_bandwidth_bytes_per_s};
}

double roofline_seconds(std::span<const memory::OpRecord> ops, const Rates& rates) {
  double seconds = 0;
  for (const memory::OpRecord& op : ops) {
    if (op.phase == memory::Phase::setup) continue;
    seconds += std::max(static_cast<double>(op.flops) / rates.flops_per_s,
                        static_cast<double>(op.bytes_moved) / rates.bytes_per_s);
  }
  return seconds;
}

}  // namespace ullage::speed
