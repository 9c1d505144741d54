// Operators of the flash-attn package (2.8) on sequences that lie one behind the other, and its cross entropy:
// flash_attn/bert_padding.py, flash_attn_interface.py (FlashAttnVarlenFunc), csrc/flash_attn/flash_api.cpp and
// ops/triton/cross_entropy.py.
#pragma once

#include "tensor/ops.h"

namespace ullage::tensor {

// index_first_axis: those rows of x [n, width], as a copy; `rows` is of integers.
Tensor take_rows(Tensor x, Tensor rows);
// index_put_first_axis: zeros [total, width] with the rows of x where `rows` says.
Tensor put_rows(Tensor x, Tensor rows, std::int64_t total);

// Sequences of equal length, one behind the other; where each begins, for queries and for keys [batch + 1].
struct PackedSequences {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  Tensor query_starts;
  Tensor key_starts;
};

// query, key and value [batch x length, heads, dim] in half precision, dim a multiple of 8; ALiBi's `slopes` [heads]
// may be empty. The result has the query's shape.
Tensor flash_attention_packed(Tensor query, Tensor key, Tensor value, const PackedSequences& sequences, Tensor slopes,
                              bool causal);

// The loss of each target by itself, in fp32; logits [n, classes] of any type are read as they are, and their gradient
// has that type.
Tensor kernel_cross_entropy(Tensor logits, Tensor targets);

}  // namespace ullage::tensor
