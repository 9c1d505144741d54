// GLM-4 (transformers: models/glm4/modeling_glm4.py): norms on both sides of attention and feed-forward, half of a head
// turned by neighbouring pairs.
#include "model/families/glm4.h"

#include "model/families/phi3.h"

namespace ullage::model {
namespace {

LayerKind glm4_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_fused_mlp(p, layer, c);
  const auto norm = [&](const char* name) { return p.norm(NormKind::rms, name, hidden_axis(c)); };
  layer.input_norm = norm("input_layernorm");
  layer.feedforward_norm = norm("post_attention_layernorm");
  layer.post_attention_norm = norm("post_self_attn_layernorm");
  layer.post_feedforward_norm = norm("post_mlp_layernorm");
  return layer;
}

Tensor glm4_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return llama_attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.feedforward_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return fused_mlp(m, layer.mlp, x); }, hidden);
  hidden = call([&](Tensor x) { return m.norm(layer.post_feedforward_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Expected<DecoderConfig> read_glm4_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 151552,
                                          .intermediate = 13696,
                                          .layers = 40,
                                          .kv_heads = 2,
                                          .head_dim = 128,
                                          .max_positions = 131072,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.qkv_bias = fields.boolean("attention_bias", true);
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 0.5);
  c.rotary.form = RotaryForm::joined_neighbours;
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_glm4(const JsonObject& config) {
  return read_glm4_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "glm4", NormKind::rms, glm4_kind); });
}

Output forward_glm4(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), glm4_layer);
}

}  // namespace ullage::model
