// The configurations of Llama, Mistral and GPT-2.
#pragma once

#include <optional>

#include "model/config_fields.h"

namespace ullage::model {

// A decoder in the manner of Llama.
struct DecoderConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> window;
  Activation activation = Activation::silu;
  double attention_dropout = 0;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool tied = false;
  Rotary rotary;
};

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

Expected<DecoderConfig> read_llama_config(const JsonObject& config);
Expected<DecoderConfig> read_mistral_config(const JsonObject& config);
Expected<Gpt2Config> read_gpt2_config(const JsonObject& config);

}  // namespace ullage::model
