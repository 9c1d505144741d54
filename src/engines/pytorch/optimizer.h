// Optimizers: what they keep from step to step and what they allocate while stepping. Those of torch.optim are PyTorch
// 2.14's; Lion is timm's, the 8-bit ones are bitsandbytes', the 4-bit and fp8 ones torchao's.
#pragma once

#include <utility>
#include <vector>

#include "engines/pytorch/optimizer_states.h"
#include "engines/pytorch/stepping.h"

namespace ullage::engines::pytorch {

class OptimizerState : public tensor::GradientListener {
 public:
  OptimizerState(tensor::Context& context, const ModelState& model, const TrainOptions& options);

  // States as they stand after the first step.
  void create();
  // What the optimizer makes when it is itself made, before any step.
  void construct();
  // One step over all gradients; creates missing states first, as torch does on the first step.
  void step();
  void zero_grad();
  // With --optimizer-in-backward: steps the one parameter whose gradient has arrived, and lets go of the gradient.
  void on_gradient(const tensor::Tensor& parameter) override;

 private:
  void create(const Group& parameters);
  void step(const Group& parameters);
  void run(const Group& parameters);

  tensor::Context& context_;
  const ModelState& model_;
  const TrainOptions& options_;
  StateMaker maker_;
  std::vector<States> states_;  // by parameter
  std::vector<char> created_;
  Group all_;
  // Muon takes the matrices of the layers, AdamW the rest, as torch's documentation asks for; else all are in the
  // first.
  Group first_, second_;
  std::vector<std::pair<const tensor::TensorImpl*, std::size_t>> indices_;  // sorted; for on_gradient
};

// torch.nn.utils.clip_grad_norm_ with its foreach path: norms of all gradients, their norm, the clipped coefficient.
// Returns the block of the stacked norms, whose size follows the number of parameters, the bytes of one norm, and the
// norm of all.
struct StackedNorms {
  memory::BlockId block = memory::kNone;
  std::int64_t norm_bytes = 0;
  tensor::Tensor total;
};
StackedNorms clip_grad_norm(const Stepping& stepping);

}  // namespace ullage::engines::pytorch
