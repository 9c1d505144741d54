// Operators that pick or replace elements.
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

// Zeros of the whole into which the gradient goes: in place, but not under a tracer.
void take_one_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor index = unpack(node, 0);
  Tensor zeros = empty(*node.context, Op::zeros, node.dims, in[0].dtype());
  if (!node.context->policy().traced) {
    node.context->record_op(Op::index_put, 0, 2 * in[0].bytes());
    out[0] = std::move(zeros);
    return;
  }
  out[0] = empty(*node.context, Op::index_put, node.dims, in[0].dtype());
}

void repeat_first_backward(Node& node, Gradients& in, Gradients& out) { out[0] = sum_to(in[0], node.dims); }

void where_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = unpack(node, 0);
  const Tensor zero = empty(*node.context, Op::empty, {}, in[0].dtype());
  out[0] = elementwise(Op::where, in[0], mask, in[0].dtype());
}

// What the entries of the columns got.
void index_copy_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor columns = unpack(node, 0);
  const Tensor x = unpack(node, 1);  // for its sizes
  Dims sizes = in[0].sizes();
  sizes[-1] = columns.size(0);
  out[0] = empty(*node.context, Op::index, sizes, in[0].dtype());
}

}  // namespace

Tensor index_copy_last(Tensor into_in, Tensor columns_in, Tensor x_in, bool in_place) {
  const Tensor into = std::move(into_in);
  const Tensor columns = std::move(columns_in);
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, index_copy_backward, {&x});
  save_input(record.node(), columns);
  save_input(record.node(), x);
  if (!in_place) return record.finish(empty(context, Op::index_put, into.sizes(), into.dtype()));
  context.record_op(Op::index_put, 0, 2 * x.bytes());
  return record.finish(context.alias(into));
}

Tensor take_one(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  const Tensor index = empty(x.context(), Op::cast, {1}, DType::i64);  // from the host
  Recording record(x.context(), take_one_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  save_input(record.node(), index);
  Dims sizes = x.sizes();
  sizes[dim] = 1;
  return record.finish(empty(x.context(), Op::index, sizes, x.dtype()));
}

Tensor repeat_first(Tensor x_in, std::int64_t times) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), repeat_first_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  Dims sizes = x.sizes();
  sizes[0] = times;
  return record.finish(empty(x.context(), Op::repeat, sizes, x.dtype()));
}

Tensor where(Tensor mask_in, Tensor x_in, Tensor number_in) {
  const Tensor mask = std::move(mask_in);
  const Tensor x = std::move(x_in);
  const Tensor number = std::move(number_in);
  Recording record(x.context(), where_backward, {&x});
  save_input(record.node(), mask);
  return record.finish(elementwise(Op::where, x, mask, x.dtype()));
}

}  // namespace ullage::tensor
