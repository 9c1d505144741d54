// llm-foundry (github.com/mosaicml/llm-foundry): its MPT with flash-attn's kernels, and what Composer's training loop
// (github.com/mosaicml/composer, composer/trainer/trainer.py) holds, on one device.
#pragma once

#include <array>

#include "engines/pytorch/code_base_modules.h"

namespace ullage::engines::pytorch {

// The network as llm-foundry builds it: MPT with ALiBi and without biases, or, of a GPT-2, with learned positions and
// biases. Fails where its MPT has no such model.
Expected<model::Architecture> llm_foundry_architecture(const model::Architecture& architecture);

class LlmFoundryModules : public CodeBaseModules {
 public:
  using CodeBaseModules::CodeBaseModules;

  // low_precision_layernorm: everything in autocast's type.
  tensor::Tensor norm(const model::Norm& module, tensor::Tensor x) override;

  tensor::Autocast autocast() const {
    return {options().autocast.has_value(), options().autocast.value_or(DType::bf16)};
  }
};

// What _train_batch and the model keep from one micro-batch to the next, beside what a Bound holds: of that, `logits`
// are the model's outputs and `loss` its loss, graph and all, until the next ones exist.
struct ComposerStep {
  std::array<tensor::Tensor, 6> metrics;  // language cross entropy, perplexity and token accuracy: sums and counts
  tensor::Tensor shifted_labels;          // of the last micro-batch
  tensor::Tensor total_loss;              // [1]
  tensor::Tensor share;                   // of the last micro-batch's loss
};

// Of a batch's beginning: metrics are reset where they have been on the card before.
void begin_composer_batch(tensor::Context& context, ComposerStep& step);

// Logits and mean loss of the next token, both under autocast.
void llm_foundry_forward(LlmFoundryModules& m, const model::Architecture& architecture, Bound& bound);

// Of the mean loss: what backward starts at, [1], and the number that is added to the total.
struct ComposerLoss {
  tensor::Tensor root;
  tensor::Tensor share;
};
ComposerLoss composer_loss(const Bound& bound);

// HuggingFaceModel.eval_forward and the metrics' updates, on what the model gave; takes a copy of the labels.
void update_train_metrics(LlmFoundryModules& m, const Bound& bound, tensor::Tensor labels, ComposerStep& step);

}  // namespace ullage::engines::pytorch
