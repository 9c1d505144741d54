// Liger's fused linear cross-entropy (ops/fused_linear_cross_entropy.py): the head's product, the loss and both
// gradients together, a chunk of rows at a time, all in the forward pass. Backward hands the gradients on.
#include <algorithm>

#include "tensor/ops.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

std::int64_t next_power_of_two(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void fused_loss_backward(Node& node, Gradients& /*in*/, Gradients& out) {
  // Compared with one, so as not to scale by it.
  empty(*node.context, Op::copy, {}, DType::f32);
  out[0] = unpack(node, 0);
  if (node.wants(1)) out[1] = unpack(node, 1);
}

Tensor product(Context& context, std::int64_t rows, std::int64_t inner, std::int64_t columns, DType dtype) {
  context.record_op(Op::mm, 2 * rows * inner * columns,
                    size_of(dtype) * (rows * inner + inner * columns + rows * columns));
  return context.make({rows, columns}, dtype);
}

}  // namespace

// The logits of the chunk before stay bound while those of the next are made.
Tensor fused_linear_cross_entropy(Tensor x_in, Tensor weight_in, Tensor targets_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor targets = std::move(targets_in);
  Context& context = x.context();
  Recording record(context, fused_loss_backward, {&x, &weight});
  const std::int64_t rows = x.size(0);
  const std::int64_t hidden = x.size(1);
  const std::int64_t vocab = weight.size(0);
  const std::int64_t chunk = next_power_of_two(quotient_up(rows, quotient_up(vocab, hidden)));
  const NoGrad no_grad(context);
  const Tensor input_gradient = zeros_like(x);
  Tensor weight_gradient;
  if (record.wants(1) && x.requires_grad()) weight_gradient = zeros_like(weight);
  const Tensor losses = empty(context, Op::zeros, {rows}, DType::f32);
  const Tensor mask = empty(context, Op::compare, {rows}, DType::boolean);
  empty(context, Op::sum, {}, DType::i64);
  Tensor logits;
  for (std::int64_t from = 0; from < rows; from += chunk) {
    const std::int64_t count = std::min(chunk, rows - from);
    logits = product(context, count, hidden, vocab, x.dtype());
    if (!x.requires_grad()) continue;
    product(context, count, vocab, hidden, x.dtype());
    if (!weight_gradient) continue;
    Tensor part = product(context, vocab, count, hidden, x.dtype());
    part = to(std::move(part), DType::f32);
  }
  Tensor loss = empty(context, Op::sum, {}, DType::f32);
  if (record) {
    save_output(record.node(), input_gradient);
    if (weight_gradient) save_output(record.node(), weight_gradient);
  }
  return record.finish(std::move(loss));
}

}  // namespace ullage::tensor
