// glm4_moe (transformers: models/glm4_moe/modeling_glm4_moe.py).
#include "model/families/glm4_moe.h"

#include "model/families/moe.h"

namespace ullage::model {
namespace {

// Queries and keys are normed, where they are, after all three are projected and before they are transposed.
AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const auto project = [&](const Linear& linear) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    return split_heads(std::move(x), a.head_dim);
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  if (a.q_norm.weight) {
    query = call([&](Tensor x) { return m.norm(a.q_norm, x); }, query);
    key = call([&](Tensor x) { return m.norm(a.k_norm, x); }, key);
  }
  query = tensor::transpose(std::move(query), 1, 2);
  key = tensor::transpose(std::move(key), 1, 2);
  value = tensor::transpose(std::move(value), 1, 2);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  if (c.qk_norm) {
    const Dimension head{{{Axis::hidden, c.head_dim}}};
    layer.attention.q_norm = p.rms_norm("self_attn.q_norm", head);
    layer.attention.k_norm = p.rms_norm("self_attn.k_norm", head);
  }
  if (traits.sparse) add_corrected_mixture(p, layer, c, true);
  else add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

void read_mixture(Fields& fields, DecoderConfig& c) {
  MixtureConfig& mixture = c.mixture;
  mixture.experts = fields.integer("n_routed_experts", 128, kMaxExperts);
  mixture.top_k = fields.integer("num_experts_per_tok", 8, kMaxExperts);
  mixture.intermediate = fields.integer("moe_intermediate_size", 1408, kMaxWidth);
  mixture.shared_intermediate = mixture.intermediate * fields.integer("n_shared_experts", 1, kMaxExperts);
  mixture.normalizes = fields.boolean("norm_topk_prob", true);
  mixture.run = read_experts_run(fields);
  check_mixture(fields, mixture, "num_experts_per_tok");
  read_groups(fields, mixture, 1, 1);
  dense_first(c, fields.count("first_k_dense_replace", 1, kMaxLayers));
}

}  // namespace

Expected<Architecture> build_glm4_moe(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 151552,
                                          .intermediate = 10944,
                                          .layers = 46,
                                          .heads = 96,
                                          .kv_heads = 8,
                                          .max_positions = 131072,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.qkv_bias = fields.boolean("attention_bias", false);
  c.qk_norm = fields.boolean("use_qk_norm", false);
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 0.5);
  c.rotary.form = RotaryForm::joined_last;
  read_mixture(fields, c);
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "glm4_moe", NormKind::rms, kind);
  });
}

Output forward_glm4_moe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, attention, sparse_or_dense<corrected_block>, std::move(hidden), rotary,
                              std::move(mask));
      });
}

}  // namespace ullage::model
