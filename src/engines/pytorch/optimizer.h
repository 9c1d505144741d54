// Optimizers of torch.optim (2.14): what they keep from step to step and what they allocate while stepping.
#pragma once

#include <vector>

#include "engines/pytorch/options.h"
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

// Work over all parameters at once is named after the optimizer, layer by layer.
class PerParameter {
 public:
  PerParameter(tensor::Context& context, const ModelState& model, std::size_t i)
      : layer_(context.layer, model.layer_of(i)) {
    context.begin_section(context.layer);
  }

 private:
  tensor::Restore<std::int16_t> layer_;
};

class OptimizerState {
 public:
  OptimizerState(tensor::Context& context, const ModelState& model, const TrainOptions& options)
      : context_(context), model_(model), options_(options) {}

  // States as they stand after the first step.
  void create();
  // One step over all gradients; creates missing states first, as torch does on the first step.
  void step();
  void zero_grad();

 private:
  void create_for(std::size_t i);
  void adamw_foreach();
  void adamw_loop();

  tensor::Context& context_;
  const ModelState& model_;
  const TrainOptions& options_;
  std::vector<std::vector<tensor::Tensor>> states_;  // by parameter
};

// torch.nn.utils.clip_grad_norm_ with its foreach path: norms of all gradients, their norm, the clipped coefficient.
// Returns the block of the stacked norms, whose size follows the number of parameters.
memory::BlockId clip_grad_norm(tensor::Context& context, const ModelState& model);

}  // namespace ullage::engines::pytorch
