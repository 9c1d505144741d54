// StarCoder2 (transformers: models/starcoder2/modeling_starcoder2.py): layer norms, a plain feed-forward part, and
// dropout of embeddings and of what both parts of a layer give.
#include "model/families/starcoder2.h"

namespace ullage::model {
namespace {

LayerKind starcoder2_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  layer.mlp.gated = false;
  layer.mlp.up = p.linear("mlp.c_fc", hidden_axis(c), ffn, c.mlp_bias);
  layer.mlp.down = p.linear("mlp.c_proj", ffn, hidden_axis(c), c.mlp_bias);
  add_norms(p, layer, c, NormKind::layer);
  layer.attention.output_dropout = c.residual_dropout;
  layer.mlp.dropout = c.residual_dropout;
  return layer;
}

Expected<DecoderConfig> read_starcoder2_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 49152,
                                          .hidden = 3072,
                                          .intermediate = 12288,
                                          .layers = 30,
                                          .heads = 24,
                                          .kv_heads = 2,
                                          .max_positions = 4096,
                                          .activation = "gelu_pytorch_tanh",
                                          .tied = true,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.residual_dropout = fields.probability("residual_dropout", 0);
  c.embedding_dropout = fields.probability("embedding_dropout", 0);
  c.qkv_bias = c.output_bias = c.mlp_bias = fields.boolean("use_bias", true);
  if (fields.has("sliding_window")) c.window = fields.integer("sliding_window", 1, kMaxPositions);
  slide_everywhere(c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_starcoder2(const JsonObject& config) {
  return read_starcoder2_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "starcoder2", NormKind::layer, starcoder2_kind); });
}

}  // namespace ullage::model
