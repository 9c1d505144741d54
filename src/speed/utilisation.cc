#include "speed/utilisation.h"

namespace ullage::speed {
namespace {

constexpr double kTera = 1e12;

// Forward and backward from forward alone: backward has two products for each of forward's.
TokenFlops of_forward(double weights, double attention, Rerun rerun) {
  const double forward = weights + attention;
  const double again = rerun == Rerun::everything ? forward : rerun == Rerun::attention ? attention : 0;
  return {3 * forward, 3 * forward + again};
}

std::optional<double> tflops_of(const hardware::PeakRates& peak, std::string_view precision) {
  if (precision == "bf16") return peak.bf16_tflops;
  if (precision == "fp16") return peak.fp16_tflops;
  if (precision == "fp32") return peak.fp32_tflops;
  if (precision == "tf32") return peak.tf32_tflops;
  return precision == "fp8" ? peak.fp8_tflops : std::nullopt;
}

}  // namespace

TokenFlops six_n(const ModelSize& model, Rerun rerun) {
  return of_forward(2 * static_cast<double>(model.parameters), 0, rerun);
}

TokenFlops six_n_attention(const ModelSize& model, std::int64_t seq_len, Rerun rerun) {
  const double attention =
      4 * static_cast<double>(model.layers) * static_cast<double>(model.attention_width) * static_cast<double>(seq_len);
  return of_forward(2 * static_cast<double>(model.parameters), attention, rerun);
}

double core_flops(std::int64_t cores, double clock_hz) { return 2 * static_cast<double>(cores) * clock_hz; }

std::optional<double> peak_flops(const hardware::Gpu& gpu, std::string_view precision) {
  const std::optional<double> tflops = tflops_of(gpu.peak, precision);
  if (!tflops) return std::nullopt;
  return *tflops * kTera;
}

}  // namespace ullage::speed
