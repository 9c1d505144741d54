#include "random_decoder.h"

#include <cstdint>

namespace ullage::testing {
namespace {

void draw_rope(Dice& dice, Json& config) {
  const std::string type = dice.any_of<std::string>({"default", "linear", "dynamic", "yarn", "llama3", "longrope"});
  if (type != "default") config["rope_scaling"] = {{"rope_type", type}, {"factor", 2.0}};
}

void draw_window(Dice& dice, Json& config) {
  if (dice.once_in(2)) config["sliding_window"] = dice.between(1, 12);
  else config["sliding_window"] = nullptr;
}

// Layers of Qwen from one on have a window.
void draw_late_windows(Dice& dice, Json& config) {
  config["use_sliding_window"] = dice.once_in(2);
  config["max_window_layers"] = dice.between(0, 3);
  draw_window(dice, config);
}

void draw_biases(Dice& dice, Json& config) {
  config["attention_bias"] = dice.once_in(3);
  config["mlp_bias"] = dice.once_in(3);
}

double draw_dropout(Dice& dice) { return dice.once_in(3) ? 0.1 : 0.0; }

void draw_llama(Dice& dice, Json& config) {
  draw_biases(dice, config);
  draw_rope(dice, config);
}

void draw_qwen3(Dice& dice, Json& config) {
  draw_late_windows(dice, config);
  config["attention_bias"] = dice.once_in(3);
}

void draw_phi3(Dice& dice, Json& config) {
  draw_window(dice, config);
  config["resid_pdrop"] = draw_dropout(dice);
  if (dice.once_in(3)) config["rope_scaling"] = {{"type", "longrope"}};
}

void draw_gemma(Dice& dice, Json& config) { config["attention_bias"] = dice.once_in(3); }

void draw_gemma2(Dice& dice, Json& config) {
  draw_gemma(dice, config);
  config["sliding_window"] = dice.between(1, 12);
  if (dice.once_in(3)) config["attn_logit_softcapping"] = nullptr;
  if (dice.once_in(3)) config["final_logit_softcapping"] = nullptr;
}

void draw_gemma3(Dice& dice, Json& config) {
  draw_gemma(dice, config);
  config["sliding_window"] = dice.between(1, 12);
  config["sliding_window_pattern"] = dice.between(1, 4);
  if (dice.once_in(3)) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
}

void draw_smollm3(Dice& dice, Json& config) {
  draw_biases(dice, config);
  config["no_rope_layer_interval"] = dice.between(1, 4);
  config["use_sliding_window"] = dice.once_in(2);
  draw_window(dice, config);
}

void draw_seed_oss(Dice& dice, Json& config) {
  draw_biases(dice, config);
  config["attention_out_bias"] = dice.once_in(2);
  config["residual_dropout"] = draw_dropout(dice);
}

void draw_exaone4(Dice& dice, Json& config) {
  config["sliding_window"] = dice.between(1, 12);
  config["sliding_window_pattern"] = dice.between(1, 4);
}

void draw_olmo(Dice& dice, Json& config) {
  config["attention_bias"] = dice.once_in(3);
  if (dice.once_in(2)) config["clip_qkv"] = 8.0;
}

void draw_olmo3(Dice& dice, Json& config) {
  config["attention_bias"] = dice.once_in(3);
  config["sliding_window"] = dice.between(1, 12);
}

void draw_stablelm(Dice& dice, Json& config) {
  config["use_qkv_bias"] = dice.once_in(2);
  config["qk_layernorm"] = dice.once_in(3);
  config["use_parallel_residual"] = dice.once_in(2);
  config["hidden_dropout"] = draw_dropout(dice);
  config["partial_rotary_factor"] = 1.0;
  const std::int64_t heads = config["num_attention_heads"];
  const std::int64_t head_dim = config["head_dim"];
  config["hidden_size"] = heads * head_dim;
  if (head_dim % 4 == 0) config["partial_rotary_factor"] = 0.5;
}

void draw_cohere(Dice& dice, Json& config) {
  config["attention_bias"] = dice.once_in(3);
  config["use_qk_norm"] = dice.once_in(2);
}

void draw_starcoder2(Dice& dice, Json& config) {
  draw_window(dice, config);
  config["use_bias"] = dice.once_in(2);
  config["residual_dropout"] = draw_dropout(dice);
  config["embedding_dropout"] = draw_dropout(dice);
}

struct Drawn {
  const char* model_type;
  void (*draw)(Dice& dice, Json& config);
};

constexpr Drawn kDecoders[] = {
    {"llama", draw_llama},        {"llama", draw_llama},        {"llama", draw_llama},
    {"mistral", draw_window},     {"qwen2", draw_late_windows}, {"qwen3", draw_qwen3},
    {"phi3", draw_phi3},          {"gemma", draw_gemma},        {"gemma2", draw_gemma2},
    {"gemma3_text", draw_gemma3}, {"seed_oss", draw_seed_oss},  {"exaone4", draw_exaone4},
    {"smollm3", draw_smollm3},    {"olmo", draw_olmo},          {"olmo2", draw_gemma},
    {"olmo3", draw_olmo3},        {"granite", draw_biases},     {"stablelm", draw_stablelm},
    {"cohere", draw_cohere},      {"cohere2", draw_olmo3},      {"starcoder2", draw_starcoder2},
};

}  // namespace

Json random_decoder(Dice& dice, std::int64_t most_layers) {
  const std::int64_t kv_heads = dice.between(1, 3);
  const std::int64_t heads = kv_heads * dice.between(1, 3);
  const std::int64_t head_dim = 2 * dice.between(1, 9);
  const std::int64_t other_width = heads * dice.between(1, 30);
  const std::string activation = dice.any_of<std::string>({"silu", "gelu", "gelu_pytorch_tanh", "gelu_new", "relu"});
  Json config{{"num_hidden_layers", dice.between(1, most_layers)},
              {"num_attention_heads", heads},
              {"num_key_value_heads", kv_heads},
              {"head_dim", head_dim},
              {"hidden_size", dice.once_in(3) ? other_width : heads * head_dim},
              {"intermediate_size", dice.between(3, 150)},
              {"vocab_size", dice.between(5, 300)},
              {"max_position_embeddings", 64},
              {"tie_word_embeddings", dice.once_in(3)},
              {"attention_dropout", dice.once_in(4) ? 0.1 : 0.0},
              {"hidden_act", activation},
              {"hidden_activation", activation}};
  const Drawn& drawn = kDecoders[dice.between(0, static_cast<std::int64_t>(std::size(kDecoders)) - 1)];
  config["model_type"] = drawn.model_type;
  drawn.draw(dice, config);
  return config;
}

}  // namespace ullage::testing
