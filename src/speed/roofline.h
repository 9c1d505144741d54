// How long operators would take at a card's published rates: each the longer of its arithmetic and its traffic.
//
// Real kernels are slower, by a factor that differs from one to the next; what is said with these times is the ratio
// of two set-ups on one card, never a time.
// Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
#pragma once

#include <optional>
#include <span>

#include "base/dtype.h"
#include "hardware/gpu.h"
#include "memory/timeline.h"

namespace ullage::speed {

struct Rates {
  double flops_per_s = 0;
  double bytes_per_s = 0;
};

// The card's rates for arithmetic in `dtype` (fp32 without TF32, as PyTorch multiplies by default) and for its memory;
// nothing where the catalogue lacks one of them.
std::optional<Rates> rates_of(const hardware::Gpu& gpu, DType dtype);

// Seconds for the operators of a step, those of its set-up left out.
double roofline_seconds(std::span<const memory::OpRecord> ops, const Rates& rates);

}  // namespace ullage::speed
