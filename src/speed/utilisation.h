// Model FLOPs utilisation: the part of a card's published arithmetic that a training run's model takes.
//
// MFU counts the FLOPs that the model asks for, forward and backward; HFU (hardware FLOPs utilisation) those that the
// card does, with what recompute repeats. Source of both: Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hardware/gpu.h"

namespace ullage::speed {

// What backward computes once more (--recompute none, selective, full).
enum class Rerun : std::uint8_t { nothing, attention, everything };

// FLOPs of training on one token, two for a multiply-accumulate.
struct TokenFlops {
  double model = 0;
  double hardware = 0;
};

// What the formulas ask of a model.
struct ModelSize {
  std::int64_t parameters = 0;  // of a mixture of experts those that are active for one token
  std::int64_t layers = 0;
  std::int64_t attention_width = 0;  // heads x dimensions of a head: h, where heads fill the hidden size
};

// 6·N: two FLOPs a parameter forward, four backward; attention's scores are left out.
// Source: Kaplan et al., "Scaling Laws for Neural Language Models", arXiv:2001.08361, section 2.1.
TokenFlops six_n(const ModelSize& model, Rerun rerun);

// 6·N + 12·L·h·s: with the products of attention over `seq_len` tokens, a causal mask's empty half counted too.
// Sources: PaLM as above; for what selective recompute repeats, Korthikanti et al., arXiv:2205.05198, section 5.
TokenFlops six_n_attention(const ModelSize& model, std::int64_t seq_len, Rerun rerun);

// cores x clock x 2: a fused multiply-add on every core in every cycle.
double core_flops(std::int64_t cores, double clock_hz);

// The card's dense peak for the type ("bf16", "fp16", "fp32", "tf32", "fp8"), in FLOP/s; nothing where it is unknown.
std::optional<double> peak_flops(const hardware::Gpu& gpu, std::string_view precision);

}  // namespace ullage::speed
