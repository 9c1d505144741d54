// Rows scaled to length one, or by their root mean square.
#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

Dims row_sizes(const Tensor& x) {
  Dims sizes = x.sizes();
  sizes[-1] = 1;
  return sizes;
}

// x * (gradient / length), without the rows whose length is 0.
void length_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor length = unpack(node, 1);
  const Tensor ratio = elementwise(Op::div, in[0], length, in[0].dtype());
  const Tensor nothing = elementwise(Op::compare, length, DType::boolean);
  const Tensor kept = elementwise(Op::masked_fill, ratio, nothing, ratio.dtype());
  out[0] = mul(x, kept);
}

void at_least_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor zero = empty(*node.context, Op::empty, {}, in[0].dtype());
  const Tensor above = elementwise(Op::compare, x, DType::boolean);
  out[0] = elementwise(Op::where, in[0], above, in[0].dtype());
}

// gradient / divisor, and -gradient * ((x / divisor) / divisor).
void quotient_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor divisor = unpack(node, 1);
  out[0] = elementwise(Op::div, in[0], divisor, in[0].dtype());
  const Tensor negated = neg(in[0]);
  Tensor quotient = elementwise(Op::div, x, divisor, x.dtype());
  quotient = elementwise(Op::div, quotient, divisor, x.dtype());
  out[1] = mul(negated, std::move(quotient));
}

Tensor length_of_rows(const Tensor& x) {
  Recording record(x.context(), length_backward, {&x});
  save_input(record.node(), x);
  Tensor out = empty(x.context(), Op::norm, row_sizes(x), x.dtype());
  save_output(record.node(), out);
  return record.finish(std::move(out));
}

Tensor at_least(const Tensor& x) {
  Recording record(x.context(), at_least_backward, {&x});
  save_input(record.node(), x);
  return record.finish(elementwise(Op::maximum, x, x.dtype()));
}

Tensor quotient(const Tensor& x, const Tensor& divisor) {
  Recording record(x.context(), quotient_backward, {&x, &divisor});
  save_input(record.node(), x);
  save_input(record.node(), divisor);
  return record.finish(elementwise(Op::div, x, divisor, x.dtype()));
}

// Slots: x, weight, the rows' reciprocal roots.
void rms_norm_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor weight = unpack(node, 1);
  const Tensor roots = unpack(node, 2);
  const Tensor gradient = contiguous(in[0]);
  x.context().record_op(Op::rms_norm_backward, 12 * x.numel(), 3 * x.bytes());
  if (node.wants(0)) out[0] = x.context().make(x.sizes(), x.dtype());
  if (node.wants(1)) out[1] = x.context().make(weight.sizes(), weight.dtype());
}

}  // namespace

Tensor rms_norm(Tensor x_in, Tensor weight_in) {
  Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  Context& context = x.context();
  if (context.autocasts_on_cuda()) return in_fp32(context, rms_norm, x, weight);
  Recording record(context, rms_norm_backward, {&x, &weight});
  save_input(record.node(), x);
  save_input(record.node(), weight);
  context.record_op(Op::rms_norm, 5 * x.numel(), 2 * x.bytes());
  Tensor out = context.make(x.sizes(), x.dtype());
  const Tensor roots = context.make(row_sizes(x), DType::f32);
  save_output(record.node(), roots);
  return record.finish(std::move(out));
}

Tensor normalize_last(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor divisor;
  {
    const Tensor length = length_of_rows(x);
    divisor = at_least(length);
  }
  return quotient(x, expand(divisor, x.sizes()));
}

}  // namespace ullage::tensor
