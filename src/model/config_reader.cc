#include "model/config_reader.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::model {
namespace {

void read_decoder(Fields& fields, DecoderConfig& c) {
  c.vocab = fields.integer("vocab_size", 32000, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.activation = fields.activation("hidden_act", "silu");
  c.tied = fields.boolean("tie_word_embeddings", false);
  c.head_dim = fields.optional_integer("head_dim", std::max<std::int64_t>(1, c.hidden / c.heads), kMaxWidth);
}

void check_heads(Fields& fields, const DecoderConfig& c) {
  if (c.heads % c.kv_heads != 0) {
    fields.reject(
        "num_key_value_heads",
        fmt::format("{} key and value heads do not divide {} query heads; set a divisor", c.kv_heads, c.heads));
  }
  if (c.heads * c.head_dim > kMaxWidth) {
    fields.reject("head_dim", fmt::format("{} heads of {} are wider than any model; expected at most {} in all",
                                          c.heads, c.head_dim, kMaxWidth));
  }
  if (c.head_dim % 2 != 0) {
    fields.reject("head_dim", fmt::format("{} is odd; the rotary embedding turns pairs, set an even one", c.head_dim));
  }
}

}  // namespace

Expected<DecoderConfig> read_llama_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  read_decoder(fields, c);
  // LlamaConfig insists on this even where head_dim is given.
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.intermediate = fields.integer("intermediate_size", 11008, kMaxWidth);
  c.kv_heads = fields.optional_integer("num_key_value_heads", c.heads, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.attention_bias = fields.boolean("attention_bias", false);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  check_heads(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<DecoderConfig> read_mistral_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  read_decoder(fields, c);
  // MistralConfig would round the width of a head down; nobody means that.
  if (!fields.has("head_dim")) check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.intermediate = fields.integer("intermediate_size", 14336, kMaxWidth);
  c.kv_heads = fields.integer("num_key_value_heads", 8, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 4096 * 32, kMaxPositions);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  // An explicit null turns the window off; an absent field means the class's default.
  if (!fields.is_null("sliding_window")) c.window = fields.integer("sliding_window", 4096, kMaxPositions);
  check_heads(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<Gpt2Config> read_gpt2_config(const JsonObject& config) {
  Fields fields(config);
  Gpt2Config c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50257, kMaxVocab);
  c.positions = either("n_positions", "max_position_embeddings", 1024, kMaxPositions);
  c.hidden = either("n_embd", "hidden_size", 768, kMaxWidth);
  c.layers = either("n_layer", "num_hidden_layers", 12, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 12, kMaxWidth);
  c.inner = fields.optional_integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0.1);
  c.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  c.attention_dropout = fields.probability("attn_pdrop", 0.1);
  c.upcast = fields.boolean("reorder_and_upcast_attn", false);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  if (fields.boolean("add_cross_attention", false)) {
    fields.reject("add_cross_attention", "cross attention in GPT-2 is not modelled; set it to false");
  }
  return finish(fields, std::move(c));
}

}  // namespace ullage::model
