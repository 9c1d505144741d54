#include "model/families/alibi.h"

#include <algorithm>

namespace ullage::model {
namespace {

using tensor::Op;

std::int64_t power_of_two_below(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  return power;
}

// Powers of one base for the greatest power of two, of another for the heads beyond. Gives back what stays bound with
// the slopes.
struct Slopes {
  Tensor slopes;
  Tensor bases[2];
  Tensor exponents[2];
};

Slopes slopes_of(tensor::Context& context, std::int64_t heads) {
  const std::int64_t first = power_of_two_below(heads);
  Slopes out;
  out.bases[0] = tensor::empty(context, Op::cast, {}, DType::f32);
  out.exponents[0] = tensor::empty(context, Op::arange, {first}, DType::i32);
  out.slopes = tensor::empty(context, Op::pow, {first}, DType::f32);
  if (first == heads) return out;
  out.bases[1] = tensor::empty(context, Op::cast, {}, DType::f32);
  const std::int64_t rest = std::min(first, heads - first);
  out.exponents[1] = tensor::empty(context, Op::arange, {rest}, DType::i32);
  const Tensor more = tensor::empty(context, Op::pow, {rest}, DType::f32);
  out.slopes = tensor::empty(context, Op::cat, {heads}, DType::f32);
  return out;
}

// Positions of the tokens that count.
Tensor count_positions(const Tensor& mask) {
  tensor::Context& context = mask.context();
  Tensor counts = tensor::empty(context, Op::sum, mask.sizes(), mask.dtype());
  counts = tensor::add_scalar(std::move(counts));
  return tensor::mul(std::move(counts), mask);
}

}  // namespace

Tensor alibi_of_tokens(const Tensor& mask, std::int64_t heads, DType slope_dtype, DType dtype) {
  tensor::Context& context = mask.context();
  const tensor::NoGrad no_grad(context);
  const Slopes slopes = slopes_of(context, heads);
  const Tensor positions = count_positions(mask);
  Tensor alibi;
  {
    const Tensor converted = tensor::to(slopes.slopes, slope_dtype);
    alibi = tensor::empty(context, Op::mul, {mask.size(0), heads, mask.size(1)}, slope_dtype);
  }
  return tensor::to(std::move(alibi), dtype);
}

}  // namespace ullage::model
