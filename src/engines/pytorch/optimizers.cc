// torch.optim's Adam, AdamW, Adagrad and RMSprop (2.14), and timm's Lion (timm/optim/lion.py).
#include "engines/pytorch/stepping.h"
#include "engines/pytorch/torch_version.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

namespace {

void raise_counters(const Stepping& s) {
  // Counters on the host are raised by a tensor of one.
  if (!s.context.policy().cuda) t::empty(s.context, Op::empty, {}, DType::f32);
}

Tensor root_of_last_state(const Stepping& s, std::size_t i) {
  const Tensor& second_moment = s.states[i].back();
  s.context.record_op(Op::sqrt, 12 * second_moment.numel(), 10 * second_moment.bytes());
  return s.context.make_in_order_of(second_moment, second_moment.dtype());
}

}  // namespace

void step_in_place(const Stepping& s, const Group& parameters, Op op) {
  for (const std::size_t i : parameters) {
    const PerParameter section(s, i);
    const Tensor& parameter = s.model.trainable()[i];
    s.context.record_op(op, 4 * parameter.numel(), 4 * parameter.bytes());
  }
}

namespace {

// One temporary the size of all parameters: the square roots, divided and added to in place. Adam's of older releases
// adds out of place, so that there is a second one.
void roots_foreach(const Stepping& s, const Group& parameters, bool denominators) {
  BoundList roots(s);
  BoundList sums(s);
  for (const Group& group : groups_by_type(s, parameters)) {
    raise_counters(s);
    roots.bind(group, make_list(s, group, [&](std::size_t i) { return root_of_last_state(s, i); }));
    if (!denominators) continue;
    sums.bind(group, make_list(s, group, [&](std::size_t i) { return unary_like(s, Op::add, s.states[i].back()); }));
  }
}

// The square root of one parameter's state, with that of the one before still bound.
void roots_loop(const Stepping& s, const Group& parameters) {
  Tensor root;
  for (const std::size_t i : parameters) {
    const PerParameter section(s, i);
    root = root_of_last_state(s, i);
  }
}

// Square root and quotient of one parameter together, with the denominator of the one before still bound.
void adam_loop(const Stepping& s, const Group& parameters) {
  Tensor denominator;
  for (const std::size_t i : parameters) {
    const PerParameter section(s, i);
    Tensor root = root_of_last_state(s, i);
    Tensor quotient = t::div_scalar(std::move(root));
    denominator = std::move(quotient);
  }
}

}  // namespace

void step_adam(const Stepping& s, const Group& parameters, OptimizerImpl impl) {
  switch (impl) {
    case OptimizerImpl::foreach: return roots_foreach(s, parameters, keeps_denominators(s.options.torch));
    case OptimizerImpl::loop: return adam_loop(s, parameters);
    case OptimizerImpl::fused: return step_in_place(s, parameters, Op::adamw);
  }
}

void step_rmsprop(const Stepping& s, const Group& parameters) {
  if (s.options.optimizer_impl == OptimizerImpl::loop) roots_loop(s, parameters);
  else roots_foreach(s, parameters, false);
}

// foreach: the square roots and the scaled gradients of a list together.
void step_adagrad(const Stepping& s, const Group& parameters) {
  if (s.options.optimizer_impl == OptimizerImpl::loop) return roots_loop(s, parameters);
  if (s.options.optimizer_impl == OptimizerImpl::fused) return step_in_place(s, parameters, Op::adagrad);
  BoundList roots(s);
  BoundList numerators(s);
  for (const Group& group : groups_by_type(s, parameters)) {
    raise_counters(s);
    roots.bind(group, make_list(s, group, [&](std::size_t i) { return root_of_last_state(s, i); }));
    numerators.bind(group,
                    make_list(s, group, [&](std::size_t i) { return unary_like(s, Op::mul, s.model.trainable()[i]); }));
  }
}

// The signs to step along; foreach takes all parameters as one list, whatever their types.
void step_lion(const Stepping& s, const Group& parameters) {
  const auto update = [&](std::size_t i) { return unary_like(s, Op::mul, s.states[i].back()); };
  if (s.options.optimizer_impl == OptimizerImpl::foreach) {
    BoundList updates(s);
    updates.bind(parameters, make_list(s, parameters, update));
    return;
  }
  Tensor bound;
  for (const std::size_t i : parameters) {
    const PerParameter section(s, i);
    bound = update(i);
  }
}

}  // namespace ullage::engines::pytorch
