#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

// 1 / sqrt(mean of squares + eps), from a tensor in fp32.
Tensor inverse_root(Tensor wide_in) {
  Tensor variance;
  {
    Tensor squares = tensor::pow_scalar(std::move(wide_in));
    variance = tensor::mean_last(std::move(squares));
  }
  Tensor shifted = tensor::add_scalar(variance);
  return tensor::rsqrt(std::move(shifted));
}

Tensor normalise_whole(const Tensor& x) {
  Tensor inverse = inverse_root(x);
  return tensor::mul(x, std::move(inverse));
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
  Tensor hidden;
  {
    Tensor wide = tensor::to(x, DType::f32);
    Tensor inverse = inverse_root(std::move(wide));
    hidden = tensor::mul(x, std::move(inverse));
  }
  if (cast == NormCast::before_weight) {
    hidden = tensor::to(hidden, is_half(weight.dtype()) ? weight.dtype() : hidden.dtype());
    return tensor::mul(weight, hidden);
  }
  Tensor scaled = tensor::mul(weight, hidden);
  return tensor::to(std::move(scaled), dtype);
}

Tensor shifted_loss(const Tensor& logits, const Tensor& labels) {
  const std::int64_t seq = logits.size(1);
  Tensor shifted = tensor::slice(logits, 1, 0, seq - 1);
  shifted = tensor::contiguous(std::move(shifted));
  Tensor targets = tensor::slice(labels, 1, 1, seq);
  targets = tensor::contiguous(std::move(targets));
  shifted = tensor::view(std::move(shifted), {-1, logits.size(-1)});
  targets = tensor::view(std::move(targets), {-1});
  return tensor::cross_entropy(shifted, targets);
}

Tensor whole_causal_mask(tensor::Context& context, std::int64_t batch, std::int64_t seq, DType dtype) {
  using tensor::Op;
  const tensor::NoGrad no_grad(context);
  const tensor::Dims sizes{batch, 1, seq, seq};
  const Tensor tokens = tensor::empty(context, Op::ones_like, {batch, seq}, DType::boolean);
  Tensor causal;
  {
    const Tensor wide = tensor::empty(context, Op::empty, {seq, seq}, DType::f32);
    causal = tensor::to(wide, dtype);
  }
  const Tensor expanded = tensor::empty(context, Op::cast, sizes, dtype);
  const Tensor inverted = tensor::empty(context, Op::sub, sizes, dtype);
  Tensor of_tokens;
  {
    const Tensor padding = tensor::empty(context, Op::cast, sizes, DType::boolean);
    of_tokens = tensor::empty(context, Op::masked_fill, sizes, dtype);
  }
  return tensor::empty(context, Op::add, sizes, dtype);
}

RotaryTables look_up_rotary(tensor::Context& context, std::int64_t seq, std::int64_t dim, DType dtype) {
  const tensor::NoGrad no_grad(context);
  RotaryTables out;
  out.cos = tensor::empty(context, tensor::Op::index, {1, 1, seq, dim}, dtype);
  out.sin = tensor::empty(context, tensor::Op::index, {1, 1, seq, dim}, dtype);
  return out;
}

Tensor rotate_half(const Tensor& x) {
  const std::int64_t dim = x.size(-1);
  const Tensor first = tensor::slice(x, -1, 0, dim / 2);
  const Tensor second = tensor::slice(x, -1, dim / 2, dim);
  Tensor negated = tensor::neg(second);
  return tensor::cat({std::move(negated), first}, -1);
}

}  // namespace ullage::model
