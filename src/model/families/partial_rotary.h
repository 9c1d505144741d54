// Rotary embeddings that turn only the first dimensions of each head.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// `x` [.., head_dim] in two views, before and from `dims`.
struct TurnedAndPassed {
  Tensor turned;
  Tensor passed;
};
TurnedAndPassed split_rotated(const Tensor& x, std::int64_t dims);

}  // namespace ullage::model
