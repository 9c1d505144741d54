// What a training loop's names hold, until they are bound again.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace ullage::engines::pytorch {

struct Bound {
  tensor::Tensor inputs;
  tensor::Tensor labels;
  std::vector<tensor::Tensor> logits;
  tensor::Tensor loss;
  tensor::Tensor tokens;   // how many targets the step has had so far
  tensor::Tensor running;  // the sum of their losses
};

}  // namespace ullage::engines::pytorch
