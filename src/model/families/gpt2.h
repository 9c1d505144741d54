// The forward pass and the configuration of GPT-2.
#pragma once

#include "model/config_fields.h"
#include "model/family.h"

namespace ullage::model {

struct Gpt2Config {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t inner = 0;
  Activation activation = Activation::gelu_new;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool upcast = false;
  bool tied = true;
};

Expected<Gpt2Config> read_gpt2_config(const JsonObject& config);
Expected<Architecture> build_gpt2(const JsonObject& config);
Output forward_gpt2(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
