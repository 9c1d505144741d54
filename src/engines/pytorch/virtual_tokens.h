// Virtual tokens in front of a sequence, as PEFT's prompt and prefix tuning put them there (src/peft/peft_model.py,
// PeftModelForCausalLM.forward).
#pragma once

#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

// What that function makes before it calls the model, held until the model has returned: as long as this lives. The
// cache of a prefix may go with the model's output.
class VirtualTokens {
 public:
  VirtualTokens(TransformersModules& modules, const model::Architecture& architecture, const ModelState& state,
                const TrainOptions& options);
  ~VirtualTokens();
  VirtualTokens(const VirtualTokens&) = delete;
  VirtualTokens& operator=(const VirtualTokens&) = delete;

  // The batch that the model is to be given.
  model::Batch prepend(const model::Batch& batch);

 private:
  void add_prompt(model::Batch& batch);
  void add_prefix();
  tensor::Tensor from_host();  // numbers or labels of the virtual tokens, [batch, tokens]

  TransformersModules& modules_;
  const model::Architecture& architecture_;
  const ModelState& state_;
  const TrainOptions& options_;
  tensor::Context& context_;
  tensor::Tensor prompts_;
  tensor::Tensor host_labels_;
};

// Whether the model's code lets tokens be put in front of its sequences, as far as that was recorded.
Expected<void> check_virtual_tokens(const model::Architecture& architecture, const model::Tuning& tuning);

}  // namespace ullage::engines::pytorch
