// What can be counted in 64 bits: refused before anything is simulated, so that no sum of bytes or elements overflows.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/expected.h"
#include "model/architecture.h"

namespace ullage::model {

// Most bytes that a bound from above may reach: a quarter of what 64 bits hold, so that a few sums of sums fit.
inline constexpr double kMostBytes = 2305843009213693952.0;  // 2^61

// Most floating-point operations of one layer. A sum over layers can exceed 64 bits at a million tokens, which people
// do ask about; whoever sums operations saturates (add_saturated).
inline constexpr double kMostOperations = 4611686018427387904.0;  // 2^62

// Weights, gradients, both states of AdamW and the largest temporaries, all in fp32, must stay below kMostBytes.
// `where` stands in front of the error.
Expected<void> check_parameters(const Architecture& architecture, std::string_view where);

// The same for a forward and backward pass over micro_batch sequences of seq_len tokens (both positive), with every
// activation kept, attention's scores written out and everything in fp32. The number of operators needs no bound here:
// it follows from the number of layers, which the configuration's reader limits.
// Of an image network seq_len is the number of pixels.
Expected<void> check_size(const Architecture& architecture, std::int64_t micro_batch, std::int64_t seq_len);

}  // namespace ullage::model
