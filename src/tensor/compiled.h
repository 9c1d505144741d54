// Operators as torch.compile leaves them: what inductor makes one kernel of, with what AOTAutograd's min-cut partition
// keeps of it for backward (torch/_functorch/partitioners.py, torch/_inductor/scheduler.py).
//
// The partition never computes a matrix product, an attention or a reduction twice, and keeps what a product of
// backward reads anyway; all that is elementwise between these is computed again. So a product's own input is kept by
// the product (ops.h), an elementwise kernel keeps what its inputs hold, and a norm its statistics beside its input.
// Sums have no memory of their own: their kernel writes where one of the terms was. tests/truth/compiled_models.py
// shows it.
#pragma once

#include <vector>

#include "tensor/ops.h"

namespace ullage::tensor {

// One handle for each reader of a kernel's result: what they send back is not summed, for the kernel that reads it
// does.
using Readers = std::vector<Tensor>;

// x [..., n] over the root mean square of its rows, times weight [n]. Statistics exist only where backward wants them.
Readers compiled_rms_norm(Tensor x, Tensor weight, std::size_t readers);
// a + b, or a + number * b, in a's memory; nobody may read a itself any more.
Tensor compiled_add(Tensor a, Tensor b);
Tensor compiled_scaled_add(Tensor a, Tensor b);
// x [batch, seq, heads, dim], turned by a table, for attention: [batch, heads * times, seq, dim].
Tensor compiled_rotary(Tensor x, Tensor table, std::int64_t times);
// The same without turning.
Tensor compiled_repeat_heads(Tensor x, std::int64_t times);
// A product, and what an adapter adds to it times a number; empty: nothing. The kernel that reads both may leave their
// sum in the product's memory.
struct CompiledProduct {
  Tensor out;
  Tensor update;
};
// activation(gate) * up.
Readers compiled_gate(const CompiledProduct& gate, const CompiledProduct& up, std::size_t readers);
// Training mode; the same tensor if p is 0. The mask, of Booleans, exists only where backward wants it.
Tensor compiled_dropout(Tensor x, double p);
// logits [n, classes] in any type, targets [n]; computed in fp32 without a copy of either. The sum of the losses, or
// their mean.
Tensor compiled_cross_entropy(Tensor logits, Tensor targets, bool mean);

}  // namespace ullage::tensor
