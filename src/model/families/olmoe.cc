// OLMoE (transformers: models/olmoe/modeling_olmoe.py).
#include "model/families/olmoe.h"

#include "model/families/moe.h"
#include "model/families/olmo.h"

namespace ullage::model {
namespace {

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  hidden = tokens_of(hidden);
  const Routing routing = call([&](Tensor x) { return route_by_softmax(m, layer.mixture, x); }, hidden);
  m.keep_router_logits(routing.logits);
  const Tensor out = run_experts(m, layer.mixture, hidden, routing.chosen, routing.weights);
  return tensor::reshape(out, sizes);
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  layer.attention.q_norm = p.rms_norm("self_attn.q_norm", axis(Axis::heads, c.heads, c.head_dim));
  layer.attention.k_norm = p.rms_norm("self_attn.k_norm", axis(Axis::kv_heads, c.kv_heads, c.head_dim));
  layer.mixture = empty_mixture(c);
  layer.mixture.router = add_router(p, "mlp.gate", c);
  add_experts(p, "mlp.experts", c, layer.mixture.experts);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<DecoderConfig> read(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(
      fields, {.vocab = 50304, .hidden = 2048, .intermediate = 2048, .layers = 16, .heads = 16, .max_positions = 4096});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  if (fields.has("clip_qkv")) fields.reject("clip_qkv", "clamped projections are not modelled; set it to null");
  if (fields.has("head_dim") && c.head_dim * c.heads != c.hidden) {
    fields.reject("head_dim", "is not hidden_size / num_attention_heads, which the norms of queries and keys assume");
  }
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.mixture.experts = fields.integer("num_experts", 64, kMaxExperts);
  c.mixture.top_k = fields.integer("num_experts_per_tok", 8, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.normalizes = fields.boolean("norm_topk_prob", false);
  c.mixture.run = read_experts_run(fields);
  read_router_loss(fields, c.mixture);
  check_mixture(fields, c.mixture, "num_experts_per_tok");
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_olmoe(const JsonObject& config) {
  return read(config).map([](const DecoderConfig& c) { return decoder(c, "olmoe", NormKind::rms, kind); });
}

Output forward_olmoe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, olmo2_attention, block, std::move(hidden), rotary, std::move(mask));
      });
}

}  // namespace ullage::model
