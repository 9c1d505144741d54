// Operators of towers that look at images, and of what carries their tokens into text.
#include "base/bytes.h"
#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

bool runs_on_card(const Context& context) { return context.policy().cuda && !context.policy().traced; }

// The parts' gradients, zeros for those that have none, one beside the other. number[0]: along which dimension.
void unbind_backward(Node& node, Gradients& in, Gradients& out) {
  const std::size_t count = node.inputs.size();
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(in[i] ? in[i] : empty(*node.context, Op::zeros, node.inputs[i].sizes, node.inputs[i].dtype));
  }
  Dims sizes = parts[0].sizes();
  sizes.insert(static_cast<int>(node.number[0]), static_cast<std::int64_t>(count));
  out[0] = empty(*node.context, Op::cat, sizes, parts[0].dtype());
}

// Edges: x, weight, bias (if any). Slots: x, weight.
void conv3d_whole_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor x = unpack(node, 0);
  const Tensor weight = unpack(node, 1);
  const int products = (node.wants(0) ? 1 : 0) + (node.wants(1) ? 1 : 0);
  context.record_op(Op::conv3d_backward, multiply_saturated(2 * products * x.size(0), weight.numel()),
                    products * (in[0].bytes() + x.bytes() + weight.bytes()));
  if (node.wants(0)) out[0] = context.make(x.sizes(), x.dtype());
  if (node.wants(1)) out[1] = context.make(weight.sizes(), weight.dtype());
  if (node.edges.size() == 3 && node.wants(2)) out[2] = context.make({weight.size(0)}, weight.dtype());
}

// What a mask is turned into where rows or elements are picked by it on a card: the number of each true entry along
// every dimension (TensorAdvancedIndexing.cpp, Nonzero.cu).
Tensor numbers_of(Context& context, const Dims& mask, std::int64_t count) {
  const Tensor whole = empty(context, Op::clone, mask, DType::boolean);
  return empty(context, Op::index, {count, mask.size()}, DType::i64);
}

// masked_select; the mask is expanded to the whole first.
Tensor select_masked(const Tensor& gradient, const Dims& sizes) {
  Context& context = gradient.context();
  Tensor numbers;
  if (runs_on_card(context)) numbers = numbers_of(context, gradient.sizes(), numel(sizes));
  return empty(context, Op::masked_scatter_backward, sizes, gradient.dtype());
}

// Slot: the mask. Edges: x, source. Where the source stands x has no share; the source's is what the mask selects.
void masked_scatter_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = unpack(node, 0);
  if (node.wants(0)) out[0] = elementwise(Op::masked_fill, in[0], mask, in[0].dtype());
  if (node.wants(1)) out[1] = select_masked(in[0], node.dims);
}

}  // namespace

std::vector<Tensor> unbind(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), unbind_backward, {&x});
  if (record) record.node()->number[0] = dim;
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes.erase(dim);
  strides.erase(dim);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.size(dim); ++i) parts.push_back(record.finish(x.context().alias(x, sizes, strides)));
  return parts;
}

Tensor conv3d_whole(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  Context& context = x.context();
  if (context.autocast.enabled) return in_low_precision(context, conv3d_whole, x, weight, bias);
  Recording record = bias ? Recording(context, conv3d_whole_backward, {&x, &weight, &bias})
                          : Recording(context, conv3d_whole_backward, {&x, &weight});
  save_input(record.node(), x);
  save_input(record.node(), weight);
  const Dims sizes{x.size(0), weight.size(0), 1, 1, 1};
  context.record_op(Op::conv3d, multiply_saturated(2 * x.size(0), weight.numel()),
                    x.bytes() + weight.bytes() + numel(sizes) * size_of(x.dtype()));
  return record.finish(context.make(sizes, x.dtype()));
}

Tensor masked_scatter(Tensor x_in, Tensor mask_in, Tensor source_in) {
  const Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in);
  const Tensor source = std::move(source_in);
  Recording record(x.context(), masked_scatter_backward, {&x, &source});
  if (record) record.node()->dims = source.sizes();
  save_input(record.node(), mask);
  Tensor out = elementwise(Op::masked_scatter, x, x.dtype());
  if (runs_on_card(x.context())) {
    // Which element of the source each true entry gets, and the mask expanded (cuda/IndexKernel.cpp, .cu).
    const Tensor sums = empty(x.context(), Op::cumsum, x.sizes(), DType::i64);
    const Tensor whole = empty(x.context(), Op::clone, x.sizes(), DType::boolean);
  }
  return record.finish(std::move(out));
}

}  // namespace ullage::tensor
