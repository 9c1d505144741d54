// The rule that elementwise operators share: broadcast shape, promoted type, memory order of the result.
#pragma once

#include "tensor/ops.h"

namespace ullage::tensor {

// Type of a result of two tensors with at least one dimension each (torch's promotion of floating types).
DType promote(DType a, DType b);

// The result of an elementwise operator on one or two tensors: a new tensor in the memory order of the operands.
Tensor elementwise(Op op, const Tensor& a, DType dtype);
Tensor elementwise(Op op, const Tensor& a, const Tensor& b, DType dtype);

}  // namespace ullage::tensor
