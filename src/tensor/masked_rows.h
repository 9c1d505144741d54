// Rows that a mask of truth values picks: x[mask] and x[mask] = values.
#pragma once

#include "tensor/context.h"

namespace ullage::tensor {

// x [..., n] by a mask of x's leading sizes, which is true `rows` times: [rows, n].
Tensor index_by_mask(Tensor x, Tensor mask, std::int64_t rows);
// Puts values [rows, n] into x itself, recorded.
void put_by_mask(const Tensor& x, Tensor mask, Tensor values);

}  // namespace ullage::tensor
