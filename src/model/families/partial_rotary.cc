#include "model/families/partial_rotary.h"

namespace ullage::model {

TurnedAndPassed split_rotated(const Tensor& x, std::int64_t dims) {
  TurnedAndPassed out;
  out.turned = tensor::slice(x, -1, 0, dims);
  out.passed = tensor::slice(x, -1, dims, x.size(-1));
  return out;
}

}  // namespace ullage::model
