#include "tensor/ops.h"
#include "tensor/quantised.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

std::int64_t groups_of(std::int64_t in) { return (in + kPackedGroup - 1) / kPackedGroup; }

// Codes of eight to an i32, shifted into place as i32 and cut to a byte, then to their four bits.
Tensor bytes_of_codes(Context& context, std::int64_t codes) {
  Tensor wide = empty(context, Op::dequantize, {codes}, DType::i32);
  const Tensor narrow = empty(context, Op::cast, {codes}, DType::u8);
  wide.reset();
  return empty(context, Op::dequantize, {codes}, DType::u8);
}

// One row of a table of groups for each row of the weight.
Tensor rows_of_groups(Context& context, const Dims& sizes, DType dtype) {
  const Tensor rows = empty(context, Op::cast, {sizes[0]}, DType::i64);
  return empty(context, Op::index, sizes, dtype);
}

// BaseQuantLinear.dequantize_weight: scales[g] * (codes - zeros[g]).
Tensor unpacked_gptq(const PackedWeight& weight) {
  Context& context = weight.codes.context();
  const Dims sizes{weight.shape[1], weight.shape[0]};
  const Tensor zeros = bytes_of_codes(context, weight.scales.numel());
  const Tensor codes = bytes_of_codes(context, numel(sizes));
  const Tensor scale = rows_of_groups(context, sizes, weight.scales.dtype());
  Tensor zero = rows_of_groups(context, sizes, DType::u8);
  const Tensor difference = empty(context, Op::sub, sizes, DType::u8);
  zero.reset();
  return empty(context, Op::mul, sizes, weight.scales.dtype());
}

// The shifts are i64, and so is what they shift.
Tensor unpacked_columns(Context& context, std::int64_t codes) {
  const Tensor shifts = empty(context, Op::arange, {kPackedCodes}, DType::i64);
  const Tensor wide = empty(context, Op::dequantize, {codes}, DType::i64);
  return empty(context, Op::cast, {codes}, DType::u8);
}

struct CodesAndZeros {
  Tensor codes;
  Tensor zeros;
};

// AWQ packs columns in an order of its own. What the caller binds stays alive meanwhile.
CodesAndZeros in_order(Context& context, std::int64_t columns, std::int64_t codes, std::int64_t zeros) {
  CodesAndZeros out;
  Tensor order = empty(context, Op::arange, {columns}, DType::i32);
  {
    Tensor numbers;  // of the host's list
    if (!context.policy().traced) numbers = empty(context, Op::copy, {kPackedCodes}, DType::i64);
    order = empty(context, Op::index, {columns}, DType::i32);
  }
  out.zeros = empty(context, Op::index, {zeros}, DType::u8);
  out.codes = empty(context, Op::index, {codes}, DType::u8);
  return out;
}

// dequantize_gemm (packing_utils.py): (codes - zeros) * scales, both repeated for all rows of their group.
Tensor unpacked_awq(const PackedWeight& weight, DType dtype) {
  Context& context = weight.codes.context();
  const Dims sizes{weight.shape[1], weight.shape[0]};
  CodesAndZeros whole;
  whole.codes = unpacked_columns(context, numel(sizes));
  whole.zeros = unpacked_columns(context, weight.scales.numel());
  whole = in_order(context, weight.shape[0], numel(sizes), weight.scales.numel());
  whole.codes = empty(context, Op::dequantize, sizes, DType::u8);
  whole.zeros = empty(context, Op::dequantize, weight.scales.sizes(), DType::u8);
  const Tensor scales = empty(context, Op::repeat, sizes, dtype);
  whole.zeros = empty(context, Op::repeat, sizes, DType::u8);
  const Tensor difference = empty(context, Op::sub, sizes, DType::u8);
  return empty(context, Op::mul, sizes, dtype);
}

// The whole's gradient is a copy, and the view's a copy of that (CopySlices).
void bias_of_view_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor whole = empty(*node.context, Op::copy, in[0].sizes(), in[0].dtype());
  const Tensor part = empty(*node.context, Op::clone, in[0].sizes(), in[0].dtype());
  out[0] = whole;
}

}  // namespace

PackedWeight make_packed(Context& context, const Dims& shape, bool awq, DType scales) {
  PackedWeight out;
  const std::int64_t groups = groups_of(shape[1]);
  out.shape = shape;
  out.codes = awq ? context.make({shape[1], shape[0] / kPackedCodes}, DType::i32)
                  : context.make({shape[1] / kPackedCodes, shape[0]}, DType::i32);
  out.zeros = context.make({groups, shape[0] / kPackedCodes}, DType::i32);
  out.scales = context.make({groups, shape[0]}, scales);
  if (awq) return out;
  out.group_of_row = context.make({shape[1]}, DType::i32);
  for (int i = 0; i < 2; ++i) out.shifts.push_back(context.make({kPackedCodes}, DType::i32));
  return out;
}

std::int64_t packed_bytes(std::int64_t out, std::int64_t in, bool awq) {
  const std::int64_t groups = groups_of(in);
  const std::int64_t four_bits = out * in / 2 + groups * out / 2;
  const std::int64_t beside = awq ? 0 : 4 * in + 2 * kPackedCodes * 4;
  return four_bits + 2 * groups * out + beside;
}

Tensor unpacked(const PackedWeight& weight, DType dtype) {
  return weight.is_awq() ? unpacked_awq(weight, dtype) : unpacked_gptq(weight);
}

void add_bias_to_view(const Tensor& x, const Tensor& bias) {
  Recording record(x.context(), bias_of_view_backward, {&x});
  add_in_place(x, bias);
  record.finish(x);
}

}  // namespace ullage::tensor
