// What the decoders of other code bases share: the modules of PyTorch itself where transformers' differ from them.
#pragma once

#include "engines/pytorch/bound.h"
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

class CodeBaseModules : public TransformersModules {
 public:
  using TransformersModules::TransformersModules;

  // torch.nn.Embedding, of whose result nobody asks for a gradient.
  tensor::Tensor embedding(const model::Embedding& module, tensor::Tensor ids) override;

  // As module calls.
  tensor::Tensor project(const model::Linear& module, tensor::Tensor x);
  tensor::Tensor normed(const model::Norm& module, const tensor::Tensor& x);

  const TrainOptions& step_options() const { return options(); }
};

}  // namespace ullage::engines::pytorch
