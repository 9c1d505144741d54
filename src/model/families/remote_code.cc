#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

using tensor::Op;

Tensor mean_of_squares(Tensor wide_in) {
  Tensor squares = tensor::pow_scalar(std::move(wide_in));
  return tensor::mean_last(std::move(squares));
}

// 1 / sqrt(variance + eps)
Tensor inverse_root(Tensor variance_in) {
  Tensor shifted = tensor::add_scalar(std::move(variance_in));
  return tensor::rsqrt(std::move(shifted));
}

Tensor normalise_whole(const Tensor& x) {
  Tensor variance = mean_of_squares(x);
  Tensor inverse = inverse_root(std::move(variance));
  return tensor::mul(x, std::move(inverse));
}

// The lowest number where a key lies ahead of the query, [seq, seq]; made in fp32.
Tensor causal_part(tensor::Context& context, std::int64_t seq, DType dtype) {
  Tensor mask;
  {
    const Tensor lowest = tensor::empty(context, Op::cast, {}, DType::f32);
    mask = tensor::empty(context, Op::empty, {seq, seq}, DType::f32);
  }
  const Tensor numbers = tensor::empty(context, Op::arange, {seq}, DType::i64);
  {
    const Tensor next = tensor::empty(context, Op::add, {seq}, DType::i64);
    const Tensor seen = tensor::empty(context, Op::compare, {seq, seq}, DType::boolean);
  }
  return tensor::to(mask, dtype);
}

// The same where a token does not count.
Tensor token_part(tensor::Context& context, const tensor::Dims& sizes, DType dtype) {
  const Tensor expanded = tensor::empty(context, Op::cast, sizes, dtype);
  const Tensor inverted = tensor::empty(context, Op::sub, sizes, dtype);
  const Tensor padding = tensor::empty(context, Op::cast, sizes, DType::boolean);
  return tensor::empty(context, Op::masked_fill, sizes, dtype);
}

}  // namespace

Tensor rms_norm(Modules& m, const Norm& norm, NormCast cast, const Tensor& x) {
  const Tensor weight = m.weight(norm.weight);
  const DType dtype = x.dtype();
  if (cast == NormCast::whole) {
    Tensor wide;
    {
      const Tensor converted = tensor::to(x, DType::f32);
      wide = normalise_whole(converted);
    }
    Tensor back = tensor::to(std::move(wide), dtype);
    return tensor::mul(back, weight);
  }
  Tensor wide = tensor::to(x, DType::f32);
  const Tensor variance = mean_of_squares(std::move(wide));  // named until the function returns
  Tensor hidden;
  {
    Tensor inverse = inverse_root(variance);
    hidden = tensor::mul(x, std::move(inverse));
  }
  if (cast == NormCast::before_weight) {
    hidden = tensor::to(hidden, is_half(weight.dtype()) ? weight.dtype() : hidden.dtype());
    return tensor::mul(weight, hidden);
  }
  Tensor scaled = tensor::mul(weight, hidden);
  return tensor::to(std::move(scaled), dtype);
}

Shifted shift_by_one(const Tensor& logits, const Tensor& labels) {
  const std::int64_t seq = logits.size(1);
  Tensor shifted = tensor::slice(logits, 1, 0, seq - 1);
  shifted = tensor::contiguous(std::move(shifted));
  Tensor targets = tensor::slice(labels, 1, 1, seq);
  targets = tensor::contiguous(std::move(targets));
  shifted = tensor::view(std::move(shifted), {-1, logits.size(-1)});
  targets = tensor::view(std::move(targets), {-1});
  return {std::move(shifted), std::move(targets)};
}

Tensor shifted_loss(const Tensor& logits, const Tensor& labels) {
  const Shifted shifted = shift_by_one(logits, labels);
  return tensor::cross_entropy(shifted.logits, shifted.targets);
}

Tensor whole_causal_mask(tensor::Context& context, std::int64_t batch, std::int64_t seq, DType dtype) {
  const tensor::NoGrad no_grad(context);
  const tensor::Dims sizes{batch, 1, seq, seq};
  const Tensor tokens = tensor::empty(context, Op::ones_like, {batch, seq}, DType::boolean);
  const Tensor causal = causal_part(context, seq, dtype);
  const Tensor of_tokens = token_part(context, sizes, dtype);
  return tensor::empty(context, Op::add, sizes, dtype);
}

RotaryTables look_up_rotary(tensor::Context& context, std::int64_t seq, std::int64_t dim, DType dtype) {
  const tensor::NoGrad no_grad(context);
  RotaryTables out;
  out.cos = tensor::empty(context, Op::index, {1, 1, seq, dim}, dtype);
  out.sin = tensor::empty(context, Op::index, {1, 1, seq, dim}, dtype);
  return out;
}

Tensor inverse_frequencies(Tensor numbers_in) {
  Tensor numbers = std::move(numbers_in);
  tensor::Context& context = numbers.context();
  Tensor exponents = tensor::div_scalar(std::move(numbers));
  const Tensor powers = tensor::empty(context, Op::pow, exponents.sizes(), exponents.dtype());
  exponents.reset();
  const Tensor inverse = tensor::empty(context, Op::div, powers.sizes(), powers.dtype());
  return tensor::mul_scalar(inverse);
}

Tensor rotate_half(const Tensor& x) {
  const std::int64_t dim = x.size(-1);
  const Tensor first = tensor::slice(x, -1, 0, dim / 2);
  const Tensor second = tensor::slice(x, -1, dim / 2, dim);
  Tensor negated = tensor::neg(second);
  return tensor::cat({std::move(negated), first}, -1);
}

}  // namespace ullage::model
