// torchao's NF4 (0.7: torchao/dtypes/nf4tensor.py), whose weights PyTorch's own operators unpack for each product.
#include "tensor/ops.h"
#include "tensor/quantised.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kCodes = 16;

// The codes of every second weight, as indices.
Tensor indices(Context& context, const Dims& half) {
  const Tensor bits = empty(context, Op::dequantize, half, DType::u8);
  return empty(context, Op::cast, half, DType::i64);
}

// Those weights times their blocks' scales.
Tensor scaled(Context& context, const Dims& half, DType dtype) {
  const Tensor repeated = empty(context, Op::clone, half, dtype);
  return empty(context, Op::mul, half, dtype);
}

// get_original_weight, of [out, in] in the type that it had. Where it is compiled, all of it is one kernel.
Tensor original(Context& context, const Dims& shape, DType dtype, bool compiled) {
  if (compiled) return empty(context, Op::dequantize, shape, dtype);
  const Dims half{numel(shape) / 2};
  const Dims blocks{numel(shape) / kBlock};
  const Tensor first = indices(context, half);
  const Tensor second = indices(context, half);
  const Tensor low = empty(context, Op::index, half, dtype);
  const Tensor high = empty(context, Op::index, half, dtype);
  Tensor scales;
  {
    const Tensor divided = empty(context, Op::div, blocks, dtype);
    scales = empty(context, Op::add, blocks, dtype);
  }
  const Tensor scaled_low = scaled(context, half, dtype);
  const Tensor scaled_high = scaled(context, half, dtype);
  return empty(context, Op::cat, shape, dtype);
}

// dims: [out, in]; number[0]: its type; number[1]: whether it is compiled. Slot: the codes, which outlive the graph.
void linear_nf4_backward(Node& node, Gradients& in, Gradients& out) {
  unpack(node, 0);
  Tensor weight = original(*node.context, node.dims, static_cast<DType>(node.number[0]), node.number[1] != 0);
  out[0] = matmul(in[0], std::move(weight));
}

}  // namespace

std::int64_t nf4_bytes(std::int64_t elements) { return elements / 2 + elements / kBlock; }
std::int64_t nf4_typed_elements(std::int64_t elements) { return elements / kNF4Period + 1 + kCodes; }

NF4Weight make_nf4(Context& context, const Dims& shape, DType dtype) {
  const std::int64_t elements = numel(shape);
  NF4Weight out;
  out.shape = shape;
  out.dtype = dtype;
  out.packed = context.make({elements / 2}, DType::u8);
  out.tables.push_back(context.make({elements / kBlock}, DType::u8));  // scales of blocks, in eight bits
  out.tables.push_back(context.make({elements / kNF4Period}, dtype));  // scales of those,
  out.tables.push_back(context.make({}, dtype));                       // what was taken off them
  out.tables.push_back(context.make({kCodes}, dtype));                 // and what a code stands for
  return out;
}

// The product runs outside of the graph; what is saved, is saved behind it.
Tensor linear_nf4(Tensor x_in, const NF4Weight& weight, bool compiled) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, linear_nf4_backward, {&x});
  Tensor out;
  {
    const NoGrad no_grad(context);
    Tensor whole = original(context, weight.shape, weight.dtype, compiled);
    out = linear(x, std::move(whole), {});
  }
  if (record) {
    record.node()->dims = weight.shape;
    record.node()->number[0] = static_cast<std::int64_t>(weight.dtype);
    record.node()->number[1] = compiled ? 1 : 0;
  }
  save_input(record.node(), weight.packed);
  return record.finish(std::move(out));
}

}  // namespace ullage::tensor
