// torch.amp.GradScaler (torch 2.14, torch/amp/grad_scaler.py): what scaling the loss of a half-precision step
// allocates. Everything is a few bytes; gradients are unscaled in place.
#pragma once

#include "engines/pytorch/options.h"
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

class GradScaler {
 public:
  GradScaler(tensor::Context& context, const ModelState& model, const TrainOptions& options)
      : context_(context), model_(model), options_(options) {}

  // The scale and its growth tracker; scale() makes them where they are missing, as torch does.
  void create();
  // The loss itself where the set-up has no scaler, as are the calls below without effect.
  tensor::Tensor scale(tensor::Tensor loss);
  // unscale_(optimizer): before gradients are clipped.
  void unscale();
  // What surrounds optimizer.step() in step(optimizer) and update().
  void begin_step();
  void end_step();

 private:
  void look_for_infinities(tensor::Tensor inverse_scale);

  tensor::Context& context_;
  const ModelState& model_;
  const TrainOptions& options_;
  tensor::Tensor scale_;
  tensor::Tensor growth_tracker_;
  tensor::Tensor found_inf_;  // from unscaling to update()
  // What a fused optimizer is given for its step.
  tensor::Tensor step_found_inf_;
  tensor::Tensor step_grad_scale_;
};

}  // namespace ullage::engines::pytorch
