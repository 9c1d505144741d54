#include "engines/pytorch/optimizer.h"

#include <algorithm>

#include "engines/pytorch/torch_version.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

Group all_parameters(const ModelState& model) {
  Group out(model.trainable().size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

std::vector<Group> groups_by_type(const Stepping& s, const Group& parameters) {
  const ModelState& model = s.model;
  std::vector<DType> types;
  std::vector<Group> out;
  for (const std::size_t i : parameters) {
    const DType type = model.trainable()[i].dtype();
    const auto place = static_cast<std::size_t>(std::find(types.begin(), types.end(), type) - types.begin());
    if (place == types.size()) {
      types.push_back(type);
      out.emplace_back().reserve(parameters.size());
    }
    out[place].push_back(i);
  }
  // torch groups in a hash map of libstdc++, which puts each new type in front; in 2.0 it was one of Python's.
  if (groups_in_hash_map(s.options.torch)) std::reverse(out.begin(), out.end());
  return out;
}

OptimizerState::OptimizerState(t::Context& context, const ModelState& model, const TrainOptions& options)
    : context_(context),
      model_(model),
      options_(options),
      maker_(context, options),
      states_(model.trainable().size()),
      created_(model.trainable().size(), 0),
      all_(all_parameters(model)) {
  if (options.optimizer == Optimizer::muon) {
    for (const std::size_t i : all_) (is_muon_matrix(model, i) ? first_ : second_).push_back(i);
  } else {
    first_ = all_;
  }
  if (!options.optimizer_in_backward) return;
  for (const std::size_t i : all_) indices_.emplace_back(model.trainable()[i].impl(), i);
  std::sort(indices_.begin(), indices_.end());
}

void OptimizerState::create(const Group& parameters) {
  t::Restore<memory::Component> component(context_.component, memory::Component::optimizer);
  const Stepping s{context_, model_, options_, states_};
  for (const std::size_t i : parameters) {
    if (created_[i] != 0) continue;
    created_[i] = 1;
    const PerParameter section(s, i);
    states_[i] = maker_.make(model_.trainable()[i], options_.optimizer == Optimizer::muon && is_muon_matrix(model_, i));
  }
}

void OptimizerState::create() {
  create(first_);
  create(second_);
  context_.begin_section(memory::kNoLayer);
}

// Adagrad makes its sums in its constructor.
void OptimizerState::construct() {
  if (options_.optimizer == Optimizer::adagrad) create();
}

void OptimizerState::run(const Group& parameters) {
  const Stepping s{context_, model_, options_, states_};
  switch (options_.optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam: return step_adam(s, parameters, options_.optimizer_impl);
    case Optimizer::adagrad: return step_adagrad(s, parameters);
    case Optimizer::rmsprop: return step_rmsprop(s, parameters);
    case Optimizer::adafactor: return step_adafactor(s, parameters);
    case Optimizer::lion: return step_lion(s, parameters);
    case Optimizer::sgd:
    case Optimizer::sgd_momentum: return step_in_place(s, parameters, Op::sgd);
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit:
    case Optimizer::adamw_4bit:
    case Optimizer::adamw_fp8: return step_in_place(s, parameters, Op::adamw);
    case Optimizer::muon: {
      const bool matrices = !parameters.empty() && is_muon_matrix(model_, parameters.front());
      return matrices ? step_muon(s, parameters) : step_adam(s, parameters, OptimizerImpl::foreach);
    }
    case Optimizer::none: return;
  }
}

// The low-bit optimizers make a parameter's states when they come to it; they step in place, so that it is all one.
void OptimizerState::step(const Group& parameters) {
  if (parameters.empty()) return;
  // DecoupledLionW (llmfoundry/optim/lion.py) has done with one parameter before it comes to the next.
  if (options_.optimizer == Optimizer::lion && options_.code != nullptr && options_.code->decoupled_decay) {
    for (const std::size_t i : parameters) {
      create({i});
      run({i});
    }
    return;
  }
  create(parameters);
  run(parameters);
}

void OptimizerState::step() {
  if (options_.optimizer == Optimizer::none) return;
  t::NoGrad no_grad(context_);
  t::Restore<memory::Phase> phase(context_.phase, memory::Phase::optimizer);
  const t::Scope named(context_, context_.intern("optimizer"));
  step(first_);
  if (!second_.empty()) context_.begin_section(memory::kNoLayer);
  step(second_);
  context_.begin_section(memory::kNoLayer);
}

void OptimizerState::on_gradient(const Tensor& parameter) {
  const auto found = std::lower_bound(indices_.begin(), indices_.end(),
                                      std::pair<const t::TensorImpl*, std::size_t>(parameter.impl(), 0));
  t::NoGrad no_grad(context_);
  t::Restore<memory::Phase> phase(context_.phase, memory::Phase::optimizer);
  const t::Scope named(context_, context_.intern("optimizer"));
  step({found->second});
  Tensor same = parameter;
  same.set_grad({});
}

void OptimizerState::zero_grad() {
  const Stepping s{context_, model_, options_, states_};
  for (const std::size_t i : all_) {
    const PerParameter section(s, i);
    Tensor parameter = model_.trainable()[i];
    parameter.set_grad({});
  }
  context_.begin_section(memory::kNoLayer);
}

}  // namespace ullage::engines::pytorch
