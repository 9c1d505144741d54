#include "engines/pytorch/optimizer.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

void OptimizerState::create_for(std::size_t i) {
  const Tensor& parameter = model_.trainable()[i];
  t::Restore<memory::Component> component(context_.component, memory::Component::optimizer);
  std::vector<Tensor> state;
  const auto add = [&](Tensor tensor, std::string_view label) {
    context_.set_label(tensor.storage(), context_.intern(label));
    state.push_back(std::move(tensor));
  };
  if (options_.optimizer == Optimizer::adamw) {
    // The step counter is a host tensor unless the fused kernel reads it; with CPU kernels all is host memory.
    if (options_.optimizer_impl == OptimizerImpl::fused || !context_.policy().cuda)
      add(t::empty(context_, Op::zeros, {}, DType::f32), "step");
    add(t::zeros_like(parameter), "exp_avg");
    add(t::zeros_like(parameter), "exp_avg_sq");
  } else if (options_.optimizer == Optimizer::sgd_momentum) {
    add(t::clone(parameter, parameter.strides()), "momentum_buffer");
  }
  states_.push_back(std::move(state));
}

void OptimizerState::create() {
  for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
    const PerParameter section(context_, model_, i);
    create_for(i);
  }
  context_.begin_section(memory::kNoLayer);
}

// One temporary the size of all parameters: the square roots, divided and added to in place.
void OptimizerState::adamw_foreach() {
  // Counters on the host are raised by a tensor of one.
  if (!context_.policy().cuda) t::empty(context_, Op::empty, {}, DType::f32);
  std::vector<Tensor> roots;
  for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
    const PerParameter section(context_, model_, i);
    const Tensor& second_moment = states_[i].back();
    context_.record_op(Op::sqrt, 12 * second_moment.numel(), 10 * second_moment.bytes());
    roots.push_back(context_.make(second_moment.sizes(), second_moment.strides(), second_moment.dtype()));
  }
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const PerParameter section(context_, model_, i);
    roots[i].reset();
  }
}

// Square root and quotient of one parameter together, with the previous parameter's denominator still bound.
void OptimizerState::adamw_loop() {
  Tensor denominator;
  for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
    const PerParameter section(context_, model_, i);
    const Tensor& second_moment = states_[i].back();
    context_.record_op(Op::sqrt, 12 * second_moment.numel(), 10 * second_moment.bytes());
    Tensor root = context_.make(second_moment.sizes(), second_moment.strides(), second_moment.dtype());
    Tensor quotient = t::div_scalar(std::move(root));
    denominator = std::move(quotient);
  }
}

void OptimizerState::step() {
  if (options_.optimizer == Optimizer::none) return;
  t::NoGrad no_grad(context_);
  t::Restore<memory::Phase> phase(context_.phase, memory::Phase::optimizer);
  const t::Scope named(context_, context_.intern("optimizer"));
  if (states_.empty()) create();
  if (options_.optimizer == Optimizer::adamw && options_.optimizer_impl == OptimizerImpl::foreach) adamw_foreach();
  else if (options_.optimizer == Optimizer::adamw && options_.optimizer_impl == OptimizerImpl::loop) adamw_loop();
  else {
    for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
      const PerParameter section(context_, model_, i);
      const Tensor& parameter = model_.trainable()[i];
      context_.record_op(options_.optimizer == Optimizer::adamw ? Op::adamw : Op::sgd, 4 * parameter.numel(),
                         4 * parameter.bytes());
    }
  }
  context_.begin_section(memory::kNoLayer);
}

void OptimizerState::zero_grad() {
  for (std::size_t i = 0; i < model_.trainable().size(); ++i) {
    const PerParameter section(context_, model_, i);
    Tensor parameter = model_.trainable()[i];
    parameter.set_grad({});
  }
  context_.begin_section(memory::kNoLayer);
}

memory::BlockId clip_grad_norm(t::Context& context, const ModelState& model) {
  t::NoGrad no_grad(context);
  t::Restore<memory::Phase> phase(context.phase, memory::Phase::optimizer);
  const t::Scope named(context, context.intern("clip_grad_norm"));
  const DType dtype = model.trainable().front().dtype();
  std::vector<Tensor> norms;
  for (std::size_t i = 0; i < model.trainable().size(); ++i) {
    const PerParameter section(context, model, i);
    const Tensor& parameter = model.trainable()[i];
    context.record_op(Op::norm, 2 * parameter.numel(), parameter.bytes());
    norms.push_back(context.make({}, dtype));
  }
  context.begin_section(memory::kNoLayer);
  Tensor total;
  memory::BlockId stacked_block = memory::kNone;
  {
    const Tensor stacked = t::empty(context, Op::cat, {static_cast<std::int64_t>(norms.size())}, dtype);
    stacked_block = stacked.storage().block;
    total = t::empty(context, Op::norm, {}, dtype);
  }
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const PerParameter section(context, model, i);
    norms[i].reset();
  }
  context.begin_section(memory::kNoLayer);
  // coefficient = max_norm / (total + 1e-6), as a reciprocal times a number; then clamped, then multiplied in place.
  Tensor coefficient;
  {
    const Tensor shifted = t::add_scalar(total);
    Tensor reciprocal = t::empty(context, Op::div, {}, dtype);
    coefficient = t::mul_scalar(std::move(reciprocal));
  }
  const Tensor clamped = t::empty(context, Op::maximum, {}, dtype);
  return stacked_block;
}

}  // namespace ullage::engines::pytorch
