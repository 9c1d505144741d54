// torchtune (github.com/pytorch/torchtune): one decoder class for models in the manner of Llama, and its single-device
// recipes.
#pragma once

#include "engines/pytorch/code_base_modules.h"
#include "tensor/compiled.h"

namespace ullage::engines::pytorch {

// The network as torchtune builds it: parameters in its order, one table of rotations for all positions. Fails where
// torchtune has no such model.
Expected<model::Architecture> torchtune_architecture(const model::Architecture& architecture,
                                                     const TrainOptions& options);

// Names of modules to adapt, in transformers' words or torchtune's, as torchtune's. Without a name: queries, values,
// the output projection and the feed-forward.
Expected<model::Tuning> torchtune_tuning(const model::Tuning& tuning);

class TorchtuneModules : public CodeBaseModules {
 public:
  using CodeBaseModules::CodeBaseModules;

  tensor::Tensor linear(const model::Linear& module, tensor::Tensor x) override;
  tensor::Tensor norm(const model::Norm& module, tensor::Tensor x) override;
  // Without an adapter.
  tensor::Tensor base_product(const model::Linear& module, tensor::Tensor x);
  // In a compiled layer; the adapter has a handle of its own.
  tensor::CompiledProduct compiled_linear(const model::Linear& module, tensor::Tensor x, tensor::Tensor for_adapter);
};

// One layer under compile=True; `cache` is the table of rotations.
tensor::Tensor torchtune_compiled_layer(TorchtuneModules& m, const model::LayerKind& kind, tensor::Tensor x,
                                        const tensor::Tensor& cache);

// The model and the loss of the next token, whose logits nobody keeps.
void torchtune_forward(TorchtuneModules& m, const model::Architecture& architecture, Bound& bound);

}  // namespace ullage::engines::pytorch
