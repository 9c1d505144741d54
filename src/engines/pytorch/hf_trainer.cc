#include "engines/pytorch/hf_trainer.h"

#include <utility>

#include "tensor/ops.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

void HfTrainer::create(DType norm_dtype) {
  if (!options_.hf_trainer) return;
  const t::Restore<memory::Component> component(context_.component, memory::Component::buffers);
  loss_sum_ = t::empty(context_, Op::empty, {}, DType::f32);
  if (options_.step != Step::steady) return;
  step_loss_ = t::empty(context_, Op::div, {}, DType::f32);
  grad_norm_ = t::empty(context_, Op::norm, {}, norm_dtype);
}

void HfTrainer::take_batches(std::vector<model::Batch> batches) {
  batches_ = std::move(batches);
  const t::Restore<memory::Component> component(context_.component, memory::Component::inputs);
  target_count_ = t::empty(context_, Op::sum, {}, DType::i64);
}

void HfTrainer::convert(model::Output& out) const {
  if (!options_.autocast) return;
  const model::Output given = std::exchange(out, {});
  out.loss = t::to(given.loss, DType::f32);
  if (given.balance) out.balance = t::to(given.balance, DType::f32);
  out.logits = t::to(given.logits, DType::f32);
  if (given.encoder_hidden) out.encoder_hidden = t::to(given.encoder_hidden, DType::f32);
  for (const Tensor& logits : given.router_logits) out.router_logits.push_back(t::to(logits, DType::f32));
}

// compute_loss multiplies by the number of processes in place where the targets were counted; else the loss is divided
// by the number of micro-batches.
Tensor HfTrainer::weighed(Tensor loss_in, bool counted) const {
  Tensor loss = std::move(loss_in);
  if (counted) t::mul_scalar_in_place(loss);
  else loss = t::div_scalar(loss);
  return loss;
}

// The old loss gives way; the new one is asked for a NaN and an infinity and added in place.
void HfTrainer::add_loss(Tensor loss) {
  step_loss_ = std::move(loss);
  t::empty(context_, Op::compare, {}, DType::boolean);
  t::empty(context_, Op::compare, {}, DType::boolean);
  t::add_in_place(loss_sum_, step_loss_);
}

}  // namespace ullage::engines::pytorch
