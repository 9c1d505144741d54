// How fast text is generated at best: each token reads the weights it uses and all that is kept of its sequence.
#pragma once

#include <cstdint>

#include "speed/roofline.h"

namespace ullage::speed {

// Of one decoding step.
struct DecodeWork {
  std::int64_t weight_bytes = 0;  // read once, whatever the batch; of a mixture of experts those that are active
  std::int64_t cache_bytes = 0;   // keys, values and states of all sequences
  double flops = 0;               // of all sequences
};

// Seconds of a step at a card's published rates; real engines reach a part of them. On several cards that hold layers
// one after the other the work is the same, one card's after another's.
double decode_seconds(const DecodeWork& work, const Rates& rates);

// 2·N: a multiply-accumulate for each parameter that is active.
// Source: Kaplan et al., "Scaling Laws for Neural Language Models", arXiv:2001.08361, section 2.1.
double decode_flops(std::int64_t active_parameters);

// A token is 1/0.6 Chinese characters, as a vendor of such models tells its customers; tokenizers differ.
// Source: https://api-docs.deepseek.com/quick_start/token_usage
inline constexpr double kTokensPerChineseCharacter = 0.6;

}  // namespace ullage::speed
