// torchtitan (github.com/pytorch/torchtitan): its Llama on one device, and what its training step holds.
#pragma once

#include <vector>

#include "engines/pytorch/code_base_modules.h"

namespace ullage::engines::pytorch {

// The network as torchtitan builds it: the head apart from the embedding, one table of complex rotations, as many
// positions as the sequence has. Fails where torchtitan has no such model.
Expected<model::Architecture> torchtitan_architecture(const model::Architecture& architecture,
                                                      const TrainOptions& options);

class TorchtitanModules : public CodeBaseModules {
 public:
  using CodeBaseModules::CodeBaseModules;

  tensor::Tensor norm(const model::Norm& module, tensor::Tensor x) override;

  tensor::Autocast autocast() const {
    return {options().autocast.has_value(), options().autocast.value_or(DType::bf16)};
  }
};

// Under autocast (maybe_enable_amp): logits, the sum of the losses of the next token, and bound.loss, that sum over the
// number of targets, bound.tokens. Returns the sum, which lives until the backward pass is over.
tensor::Tensor torchtitan_forward(TorchtitanModules& m, const model::Architecture& architecture, Bound& bound);

// What train_step keeps from its first micro-batch until it returns.
struct TorchtitanStep {
  std::vector<tensor::Tensor> batches;  // inputs; their labels go one by one
  std::vector<tensor::Tensor> losses;
  tensor::Tensor counted;  // targets, as an integer
  tensor::Tensor norm;
};

}  // namespace ullage::engines::pytorch
