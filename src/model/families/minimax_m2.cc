// MiniMax-M2's family (transformers: models/minimax_m2/modeling_minimax_m2.py).
#include "model/families/minimax_m2.h"

#include "model/families/moe.h"
#include "model/families/olmo.h"

namespace ullage::model {
namespace {

// Scores by sigmoid; experts are chosen by corrected scores.
Routing route(Modules& m, const Mixture& mixture, Tensor hidden_in, const Tensor& correction) {
  const Tensor hidden = tokens_of(hidden_in);
  Routing out;
  out.logits = m.linear(mixture.router, hidden);
  Tensor wide = tensor::to(out.logits, DType::f32);
  const Tensor scores = tensor::sigmoid(std::move(wide));
  const Tensor corrected = tensor::add(scores, correction);
  // The values that the choice was made by keep their name.
  const tensor::Ranked top = tensor::topk(corrected, mixture.top_k);
  out.chosen = top.indices;
  out.weights = tensor::gather_last(scores, out.chosen);
  normalize_rows(out.weights);
  return out;
}

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  if (layer.mixture.jitters) jitter(m, hidden);
  hidden = tokens_of(hidden);
  const Tensor correction = m.buffer(layer.mixture.correction);
  const Routing routing = call([&](Tensor x) { return route(m, layer.mixture, x, correction); }, hidden);
  m.keep_router_logits(routing.logits);
  hidden = run_experts(m, layer.mixture, hidden, routing.chosen, routing.weights);
  return tensor::reshape(hidden, sizes);
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
  layer.mixture.correction = static_cast<std::int32_t>(layer.buffers.size());
  layer.buffers.push_back({"mlp.e_score_correction_bias", {c.mixture.experts}, DType::f32, true, true});
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<DecoderConfig> read(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 200064,
                                          .hidden = 3072,
                                          .intermediate = 1536,
                                          .layers = 62,
                                          .heads = 48,
                                          .kv_heads = 8,
                                          .head_dim = 128,
                                          .max_positions = 196608,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 1.0);
  c.rotary.form = RotaryForm::joined_last;
  c.mixture.experts = fields.integer("num_local_experts", 256, kMaxExperts);
  c.mixture.top_k = fields.integer("num_experts_per_tok", 8, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.run = read_experts_run(fields);
  read_router_loss(fields, c.mixture);
  c.mixture.jitters = fields.number("router_jitter_noise", 0) > 0;
  check_mixture(fields, c.mixture, "num_experts_per_tok");
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_minimax_m2(const JsonObject& config) {
  return read(config).map([](const DecoderConfig& c) { return decoder(c, "minimax_m2", NormKind::rms, kind); });
}

Output forward_minimax_m2(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, olmo2_attention, block, std::move(hidden), rotary, std::move(mask));
      });
}

}  // namespace ullage::model
