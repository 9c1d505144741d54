// Seed-OSS (transformers: models/seed_oss/modeling_seed_oss.py): Llama with dropout of what both parts of a layer give,
// and with a bias of its own for the projection behind attention.
#include "model/families/seed_oss.h"

#include "model/families/llama.h"

namespace ullage::model {
namespace {

LayerKind seed_oss_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = llama_kind(c, traits);
  layer.attention.output_dropout = c.residual_dropout;
  layer.mlp.dropout = c.residual_dropout;
  return layer;
}

Expected<DecoderConfig> read_seed_oss_config(const JsonObject& config) {
  Fields fields(config);
  // An explicit null means hidden_size / num_attention_heads; an absent field means the class's default.
  const std::int64_t head_dim = fields.is_null("head_dim") ? 0 : 128;
  DecoderConfig c = read_decoder(fields, {.vocab = 155136,
                                          .intermediate = 27648,
                                          .layers = 64,
                                          .heads = 80,
                                          .kv_heads = 8,
                                          .head_dim = head_dim,
                                          .max_positions = 524288});
  c.attention_dropout = fields.probability("attention_dropout", 0.1);
  c.residual_dropout = fields.probability("residual_dropout", 0.1);
  c.qkv_bias = fields.boolean("attention_bias", true);
  c.output_bias = fields.boolean("attention_out_bias", false);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_seed_oss(const JsonObject& config) {
  return read_seed_oss_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "seed_oss", NormKind::rms, seed_oss_kind); });
}

}  // namespace ullage::model
