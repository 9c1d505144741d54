#include "tensor/autocast.h"

#include "tensor/ops.h"

namespace ullage::tensor {
namespace {

bool is_eligible(const Tensor& x) { return x && is_floating(x.dtype()) && x.dtype() != DType::f64; }

bool is_fp32_leaf(const Tensor& x) {
  const TensorImpl& impl = *x.impl();
  return impl.leaf_requires_grad && !impl.grad_fn && impl.dtype == DType::f32;
}

}  // namespace

AutocastRegion::AutocastRegion(Context& context, Autocast state) : context_(context), before_(context.autocast) {
  ++context_.autocast_regions;
  context_.autocast = state;
}

AutocastRegion::~AutocastRegion() {
  if (--context_.autocast_regions == 0) context_.drop_cached_casts();
  context_.autocast = before_;
}

Tensor cast_to_low_precision(const Tensor& x) {
  if (!is_eligible(x)) return x;
  Context& context = x.context();
  const DType dtype = context.autocast.dtype;
  if (x.dtype() == dtype) return x;
  if (!is_fp32_leaf(x)) return to(x, dtype);
  if (Tensor cached = context.cached_cast(x)) return cached;
  Tensor cast = to(x, dtype);
  context.cache_cast(x, cast);
  return cast;
}

Tensor cast_to_fp32(const Tensor& x) { return is_eligible(x) ? to(x, DType::f32) : x; }

}  // namespace ullage::tensor
