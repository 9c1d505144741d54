// Refuses what would overflow 64-bit byte counts, before anything is simulated.
#pragma once

#include "base/expected.h"
#include "engines/pytorch/options.h"
#include "model/architecture.h"

namespace ullage::cli {

// A bound from above, in floating point: weights, gradients, states and every activation that could be held must stay
// below 2^60 bytes. Work is bounded with it, because floating-point operations are counted in 64 bits, too.
Expected<void> check_countable(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options);

}  // namespace ullage::cli
