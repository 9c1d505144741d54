#include "engines/pytorch/grad_scaler.h"

#include "engines/pytorch/optimizer.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

void GradScaler::create() {
  if (!options_.grad_scaler) return;
  t::Restore<memory::Component> component(context_.component, memory::Component::buffers);
  scale_ = t::empty(context_, Op::empty, {}, DType::f32);
  context_.set_label(scale_.storage(), context_.intern("grad_scaler.scale"));
  growth_tracker_ = t::empty(context_, Op::empty, {}, DType::i32);
  context_.set_label(growth_tracker_.storage(), context_.intern("grad_scaler.growth_tracker"));
}

Tensor GradScaler::scale(Tensor loss_in) {
  Tensor loss = std::move(loss_in);
  if (!options_.grad_scaler) return loss;
  if (!scale_) create();
  return t::mul(std::move(loss), scale_);
}

// The kernel gets copies of both numbers (_MultiDeviceReplicator); the copy of found_inf is what stays.
void GradScaler::look_for_infinities(Tensor inverse_scale_in) {
  const Tensor inverse_scale = std::move(inverse_scale_in);
  const Tensor found_inf = t::empty(context_, Op::zeros, {}, DType::f32);
  found_inf_ = t::empty(context_, Op::copy, {}, DType::f32);
  const Tensor inverse_copy = t::empty(context_, Op::copy, {}, DType::f32);
  for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
    const PerParameter section(context_, model_, i);
    const Tensor& parameter = model_.trainable()[i];
    context_.record_op(Op::mul, parameter.numel(), 2 * parameter.bytes());
  }
  context_.begin_section(memory::kNoLayer);
}

// The reciprocal is taken in fp64.
void GradScaler::unscale() {
  if (!options_.grad_scaler || options_.optimizer == Optimizer::none) return;
  t::NoGrad no_grad(context_);
  t::Restore<memory::Phase> phase(context_.phase, memory::Phase::optimizer);
  const t::Scope named(context_, context_.intern("grad_scaler"));
  Tensor inverse = t::to(scale_, DType::f64);
  inverse = t::div_scalar(std::move(inverse));
  inverse = t::to(std::move(inverse), DType::f32);
  look_for_infinities(std::move(inverse));
}

// Fused optimizers unscale by themselves: they are told the scale and whether there was an infinity.
void GradScaler::begin_step() {
  if (!options_.grad_scaler || options_.optimizer == Optimizer::none) return;
  const bool unscaled = static_cast<bool>(found_inf_);
  if (!takes_scale(options_)) {
    if (!unscaled) unscale();
    return;
  }
  t::NoGrad no_grad(context_);
  t::Restore<memory::Phase> phase(context_.phase, memory::Phase::optimizer);
  const t::Scope named(context_, context_.intern("grad_scaler"));
  if (!unscaled) look_for_infinities(t::empty(context_, Op::ones_like, {}, DType::f32));
  step_found_inf_ = t::empty(context_, Op::add, {}, DType::f32);
  if (!unscaled) step_grad_scale_ = t::empty(context_, Op::mul, {}, DType::f32);
}

void GradScaler::end_step() {
  step_grad_scale_.reset();
  step_found_inf_.reset();
  found_inf_.reset();
}

}  // namespace ullage::engines::pytorch
