// LitGPT (github.com/Lightning-AI/litgpt; lit-gpt until 2024): one class for all decoders, run by Lightning Fabric.
#pragma once

#include <vector>

#include "engines/pytorch/code_base_modules.h"

namespace ullage::engines::pytorch {

// The network as LitGPT builds it: query, key and value in one projection, the head apart from the embedding, tables of
// cosines and sines for `options.seq_len` positions. Fails where LitGPT has no such model.
Expected<model::Architecture> litgpt_architecture(const model::Architecture& architecture, const TrainOptions& options);

// Names of modules to adapt, in any family's words, as LitGPT's switches (lora_query, lora_mlp…), and what else it
// decides about tuning. Without a name: queries and values.
Expected<model::Tuning> litgpt_tuning(const model::Architecture& converted, const model::Tuning& tuning,
                                      std::int64_t adapter);

// Adds what LoRA keeps beside its factors: which rows of a fused projection it changes, where these are not all.
void add_row_indices(model::Architecture& converted, const model::Tuning& tuning);

// The parameter of that name in a layer of that kind; empty: it has none.
model::ParameterRef find_parameter(const model::LayerKind& kind, std::string_view name);

class LitGptModules : public CodeBaseModules {
 public:
  using CodeBaseModules::CodeBaseModules;

  tensor::Tensor linear(const model::Linear& module, tensor::Tensor x) override;
  tensor::Tensor norm(const model::Norm& module, tensor::Tensor x) override;
  // The fused projection of queries, keys and values.
  tensor::Tensor qkv(const model::Attention& module, tensor::Tensor x);

  // A product as LLaMA-Adapter's second version makes it: with a bias and a scale of its own.
  tensor::Tensor product(const model::Linear& module, tensor::Tensor x);

  const Choices& choices() const { return *options().code; }

 private:
  tensor::Tensor update_of(const Adapter& adapter, tensor::Tensor x);
};

// The model under its precision's context, its logits in fp32, and the loss of the next token outside of it.
void litgpt_forward(LitGptModules& m, const model::Architecture& architecture, Bound& bound);

}  // namespace ullage::engines::pytorch
