// Llama and Mistral (transformers: models/llama/modeling_llama.py, models/mistral/modeling_mistral.py).
#include "model/families/llama.h"

namespace ullage::model {

LayerKind llama_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<DecoderConfig> read_llama_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {});
  // LlamaConfig insists on this even where head_dim is given.
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<DecoderConfig> read_mistral_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c =
      read_decoder(fields, {.intermediate = 14336, .kv_heads = 8, .max_positions = 4096 * 32, .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  // An explicit null turns the window off; an absent field means the class's default.
  if (!fields.is_null("sliding_window")) c.window = fields.integer("sliding_window", 4096, kMaxPositions);
  slide_everywhere(c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<Architecture> build_llama(const JsonObject& config) {
  return read_llama_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "llama", NormKind::rms, llama_kind); });
}

Expected<Architecture> build_mistral(const JsonObject& config) {
  return read_mistral_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "mistral", NormKind::rms, llama_kind); });
}

Output forward_llama(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), llama_layer);
}

}  // namespace ullage::model
