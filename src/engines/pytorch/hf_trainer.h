// The loop of transformers' Trainer (transformers 5.12, trainer.py; accelerate 1.14): what it keeps beside the model.
#pragma once

#include <vector>

#include "engines/pytorch/options.h"
#include "model/modules.h"

namespace ullage::engines::pytorch {

class HfTrainer {
 public:
  HfTrainer(tensor::Context& context, const TrainOptions& options) : context_(context), options_(options) {}

  explicit operator bool() const { return options_.hf_trainer; }
  // The sum of losses, and what a steady step finds bound: the loss and the norm of the step before.
  void create(DType norm_dtype);
  // All batches of a step are on the card before it begins, and so is the number of their targets.
  void take_batches(std::vector<model::Batch> batches);
  const model::Batch& batch(std::int64_t micro) const { return batches_[static_cast<std::size_t>(micro)]; }
  const tensor::Tensor& target_count() const { return target_count_; }

  // accelerate.utils.convert_outputs_to_fp32; the model's own output lives until all of it is converted.
  void convert(model::Output& out) const;
  // training_step, between the model and backward; `counted`: the loss knows the number of targets.
  tensor::Tensor weighed(tensor::Tensor loss, bool counted) const;
  // What happens to a micro-batch's loss.
  void add_loss(tensor::Tensor loss);
  void forget_norm() { grad_norm_.reset(); }
  void keep_norm(tensor::Tensor norm) { grad_norm_ = std::move(norm); }

 private:
  tensor::Context& context_;
  const TrainOptions& options_;
  std::vector<model::Batch> batches_;
  tensor::Tensor target_count_;
  tensor::Tensor loss_sum_;
  tensor::Tensor step_loss_;  // of the last micro-batch
  tensor::Tensor grad_norm_;
};

}  // namespace ullage::engines::pytorch
