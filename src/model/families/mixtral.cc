// Mixtral (transformers: models/mixtral/modeling_mixtral.py).
#include "model/families/mixtral.h"

#include "model/families/moe.h"

namespace ullage::model {
namespace {

// Weights stay in fp32.
Routing route(Modules& m, const Mixture& mixture, Tensor hidden_in) {
  const Tensor hidden = tokens_of(hidden_in);
  Routing out;
  out.logits = m.linear(mixture.router, hidden);
  Tensor logits = tensor::to(out.logits, DType::f32);
  const Tensor probabilities = tensor::softmax(std::move(logits), DType::f32);
  tensor::Ranked top = tensor::topk(probabilities, mixture.top_k);
  normalize_rows(top.values);
  out.weights = std::move(top.values);
  out.chosen = std::move(top.indices);
  return out;
}

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  if (layer.mixture.jitters) jitter(m, hidden);
  hidden = tokens_of(hidden);
  const Routing routing = call([&](Tensor x) { return route(m, layer.mixture, x); }, hidden);
  m.keep_router_logits(routing.logits);
  hidden = run_experts(m, layer.mixture, hidden, routing.chosen, routing.weights);
  return tensor::reshape(hidden, sizes);
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, llama_attention, block, std::move(hidden), rotary, std::move(mask));
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  layer.mixture = empty_mixture(c);
  layer.mixture.router = add_router(p, "mlp.gate", c);
  add_experts(p, "mlp.experts", c, layer.mixture.experts);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<DecoderConfig> read(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.intermediate = 14336, .kv_heads = 8, .max_positions = 4096 * 32});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  if (!fields.is_null("sliding_window") && fields.has("sliding_window"))
    c.window = fields.integer("sliding_window", 4096, kMaxPositions);
  slide_everywhere(c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.mixture.experts = fields.integer("num_local_experts", 8, kMaxExperts);
  c.mixture.top_k = fields.integer("num_experts_per_tok", 2, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.run = read_experts_run(fields);
  read_router_loss(fields, c.mixture);
  c.mixture.jitters = fields.number("router_jitter_noise", 0) > 0;
  check_mixture(fields, c.mixture, "num_experts_per_tok");
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_mixtral(const JsonObject& config) {
  return read(config).map([](const DecoderConfig& c) { return decoder(c, "mixtral", NormKind::rms, kind); });
}

Output forward_mixtral(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), decoder_layer);
}

}  // namespace ullage::model
