// Reading Hugging Face configurations: the fields that decide memory, with the defaults of transformers' configuration
// classes, checked against what can be built.
#pragma once

#include <optional>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

// Largest values that are taken for a dimension; what lies beyond is a slip or an attack, not a model.
inline constexpr std::int64_t kMaxWidth = 1 << 24;  // hidden, ffn, heads x head_dim, positions per row
inline constexpr std::int64_t kMaxVocab = 1 << 26;
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxPositions = 1 << 30;

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

// A dimension of `count` units along one axis.
Dimension axis(Axis axis, std::int64_t count, std::int64_t unit = 1);

// The inverse frequencies that a rotary module registers: the current ones and the original copy.
std::vector<Buffer> rotary_buffers(const Rotary& rotary);

}  // namespace ullage::model
