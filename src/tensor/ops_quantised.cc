#include "base/bytes.h"
#include "tensor/ops.h"
#include "tensor/quantised.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kNestedBlock = 256;
constexpr std::int64_t kCodes4Bit = 16;
constexpr std::int64_t kCodes8Bit = 256;
// Beyond this many rows, or where rows are no whole blocks, the forward product dequantises the weight first; below it
// the kernel's own choice depends on the card.
constexpr std::int64_t kMostRowsInKernel = 1536;

std::int64_t blocks_of(std::int64_t elements, std::int64_t block) { return (elements + block - 1) / block; }
std::int64_t rows_of(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

Dims with_last(Dims sizes, std::int64_t last) {
  sizes[-1] = last;
  return sizes;
}

Tensor product(Context& context, const Dims& sizes, std::int64_t inner, DType dtype) {
  context.record_op(Op::mm, 2 * numel(sizes) * inner, numel(sizes) * size_of(dtype));
  return context.make(sizes, dtype);
}

// dims: [out, in]; number[0]: the weight's own type; number[1]: blocks whose maxima are quantised, or 0.
void four_bit_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  if (node.edges.size() > 1 && node.wants(1)) out[1] = in[0];
  if (!node.wants(0)) return;
  Tensor weight;
  {
    Tensor maxima;
    if (node.number[1] > 0) maxima = empty(context, Op::dequantize, {node.number[1]}, DType::f32);
    weight = empty(context, Op::dequantize, node.dims, static_cast<DType>(node.number[0]));
  }
  weight = to(std::move(weight), in[0].dtype());
  out[0] = product(context, with_last(in[0].sizes(), node.dims[1]), node.dims[0], in[0].dtype());
}

// dequantize_4bit, which gives the type that the weight had before, and a cast.
Tensor dequantised(Context& context, const FourBitWeight& weight, std::int64_t nested, DType dtype) {
  Tensor whole;
  {
    Tensor maxima;
    if (nested > 0) maxima = empty(context, Op::dequantize, {nested}, DType::f32);
    whole = empty(context, Op::dequantize, weight.shape, weight.dtype);
  }
  return to(std::move(whole), dtype);
}

// dims: [out, in]. The codes become the input's type and are scaled in place.
void eight_bit_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor gradient = contiguous(in[0]);
  if (node.edges.size() > 1 && node.wants(1)) out[1] = in[0];
  if (!node.wants(0)) return;
  const DType dtype = node.checkpoint->input.dtype();
  const Tensor weight = empty(context, Op::dequantize, node.dims, dtype);
  empty(context, Op::mul, {node.dims[0], 1}, DType::f32);
  const Tensor cast = to(gradient, dtype);
  out[0] = product(context, with_last(in[0].sizes(), node.dims[1]), node.dims[0], dtype);
}

Recording recording(const Tensor& x, const Tensor& bias, BackwardFunction backward) {
  return bias ? Recording(x.context(), backward, {&x, &bias}) : Recording(x.context(), backward, {&x});
}

// In half precision, its magnitudes and which of them are large; then codes of eight bits and a scale for each row.
void quantise_rows(Context& context, const Tensor& x, Tensor& codes, Tensor& scales) {
  const Tensor half = to(x, DType::f16);
  if (!context.policy().traced) {
    const Tensor magnitudes = empty(context, Op::sub, x.sizes(), DType::f16);
    const Tensor large = empty(context, Op::compare, x.sizes(), DType::boolean);
  }
  codes = empty(context, Op::quantize, x.sizes(), DType::u8);
  scales = empty(context, Op::quantize, {x.size(0)}, DType::f32);
}

}  // namespace

std::int64_t four_bit_bytes(std::int64_t elements, bool double_quantised) {
  const std::int64_t blocks = blocks_of(elements, kBlock);
  const std::int64_t tables = kCodes4Bit * 4;
  if (!double_quantised) return (elements + 1) / 2 + 4 * blocks + tables;
  return (elements + 1) / 2 + blocks + 4 * blocks_of(blocks, kNestedBlock) + tables + 4 * kCodes8Bit + 4;
}

std::int64_t eight_bit_bytes(std::int64_t elements, std::int64_t rows) { return elements + 4 * rows; }

FourBitWeight make_four_bit(Context& context, const Dims& shape, DType dtype, bool double_quantised) {
  FourBitWeight out;
  const std::int64_t elements = numel(shape);
  const std::int64_t blocks = blocks_of(elements, kBlock);
  out.shape = shape;
  out.dtype = dtype;
  out.packed = context.make({(elements + 1) / 2, 1}, DType::u8);
  out.maxima = context.make({blocks}, double_quantised ? DType::u8 : DType::f32);
  out.tables.push_back(context.make({kCodes4Bit}, DType::f32));
  if (!double_quantised) return out;
  out.nested_maxima = context.make({blocks_of(blocks, kNestedBlock)}, DType::f32);
  out.tables.push_back(context.make({kCodes8Bit}, DType::f32));
  out.tables.push_back(context.make({}, DType::f32));  // the mean that was taken off the maxima
  return out;
}

EightBitWeight make_eight_bit(Context& context, const Dims& shape) {
  EightBitWeight out;
  out.codes = context.make(shape, DType::u8);
  out.scales = context.make({shape[0]}, DType::f32);
  return out;
}

Tensor matmul_4bit(Tensor x_in, const FourBitWeight& weight, Tensor bias_in) {
  const Tensor x = std::move(x_in);
  const Tensor bias = std::move(bias_in);
  Context& context = x.context();
  Recording record = recording(x, bias, four_bit_backward);
  const std::int64_t nested = weight.nested_maxima ? weight.maxima.numel() : 0;
  if (record) {
    record.node()->dims = weight.shape;
    record.node()->number[0] = static_cast<std::int64_t>(weight.dtype);
    record.node()->number[1] = nested;
    if (weight.keeps_input) {
      record.node()->checkpoint = Ref<Checkpoint>(new Checkpoint);
      record.node()->checkpoint->input = detach(x);
    }
  }
  Tensor maxima;
  Tensor shifted;
  Tensor whole;
  const bool in_kernel = rows_of(x) <= kMostRowsInKernel && x.size(-1) % kBlock == 0;
  if (weight.dequantises_first) {
    whole = dequantised(context, weight, nested, x.dtype());
  } else if (!context.policy().traced && !in_kernel) {
    if (nested > 0) {
      maxima = empty(context, Op::dequantize, {nested}, DType::f32);
      shifted = empty(context, Op::add, {nested}, DType::f32);
    }
    whole = empty(context, Op::dequantize, weight.shape, x.dtype());
  }
  Tensor out = product(context, with_last(x.sizes(), weight.shape[0]), x.size(-1), x.dtype());
  // To what cannot be flattened a bias is added by an operator of its own: in place, but not under a tracer.
  if (weight.dequantises_first && bias && !x.contiguous() && context.policy().traced)
    out = empty(context, Op::add, out.sizes(), out.dtype());
  return record.finish(std::move(out));
}

Tensor matmul_packed(Tensor x_in, const PackedWeight& weight) {
  const Tensor x = std::move(x_in);
  const Tensor flat = contiguous(x);
  return product(x.context(), with_last(x.sizes(), weight.shape[0]), x.size(-1), x.dtype());
}

namespace {

std::int64_t blocks_of(std::int64_t size) { return (size + kScaledBlock - 1) / kScaledBlock; }

}  // namespace

std::int64_t block_scaled_bytes(std::int64_t out, std::int64_t in) {
  return out * in + blocks_of(out) * blocks_of(in) * size_of(DType::f32);
}

BlockScaledWeight make_block_scaled(Context& context, const Dims& shape) {
  BlockScaledWeight out;
  out.codes = context.make(shape, DType::u8);
  out.scales = context.make({blocks_of(shape[0]), blocks_of(shape[1])}, DType::f32);
  return out;
}

Tensor matmul_block_scaled(Tensor x_in, const BlockScaledWeight& weight) {
  const Tensor x = std::move(x_in);
  const Tensor flat = contiguous(x);
  return product(x.context(), with_last(x.sizes(), weight.codes.size(0)), x.size(-1), x.dtype());
}

Tensor matmul_8bit(Tensor x_in, const EightBitWeight& weight, Tensor bias_in) {
  const Tensor x = std::move(x_in);
  const Tensor bias = std::move(bias_in);
  Context& context = x.context();
  Recording record = recording(x, bias, eight_bit_backward);
  if (record) {
    record.node()->dims = weight.codes.sizes();
    record.node()->checkpoint = Ref<Checkpoint>(new Checkpoint);
    record.node()->checkpoint->input = detach(x);
  }
  const std::int64_t features = weight.codes.size(0);
  const Tensor rows = reshape(x, {-1, x.size(-1)});
  Tensor codes;
  Tensor scales;
  {
    const NoGrad no_grad(context);
    quantise_rows(context, rows, codes, scales);
  }
  Tensor sums;
  Tensor half;
  if (!context.policy().traced) {
    sums = empty(context, Op::mm, {rows.size(0), features}, DType::i32);
    if (x.dtype() != DType::f16) half = empty(context, Op::dequantize, {rows.size(0), features}, DType::f16);
  }
  return record.finish(product(context, with_last(x.sizes(), features), x.size(-1), x.dtype()));
}

}  // namespace ullage::tensor
