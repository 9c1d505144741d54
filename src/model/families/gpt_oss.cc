// gpt-oss (transformers: models/gpt_oss/modeling_gpt_oss.py).
#include "model/families/gpt_oss.h"

#include "model/families/moe.h"

namespace ullage::model {
namespace {

// The best logits, and a softmax over them alone.
Routing route(Modules& m, const Mixture& mixture, Tensor hidden) {
  Routing out;
  out.logits = m.linear(mixture.router, std::move(hidden));
  tensor::Ranked top = tensor::topk(out.logits, mixture.top_k);
  out.weights = tensor::softmax(top.values, top.values.dtype());
  out.chosen = std::move(top.indices);
  return out;
}

struct Routed {
  Tensor hidden;
  Tensor weights;
};

Routed block(Modules& m, const Mixture& mixture, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  hidden = tokens_of(hidden);
  const Routing routing = call([&](Tensor x) { return route(m, mixture, x); }, hidden);
  m.keep_router_logits(routing.logits);
  hidden = run_experts(m, mixture, hidden, routing.chosen, routing.weights);
  hidden = tensor::reshape(hidden, sizes);
  return {std::move(hidden), routing.weights};
}

// The routers' weights take the name, and with it the place, of attention's probabilities.
Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return llama_attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  Routed routed = call([&](Tensor x) { return block(m, layer.mixture, x); }, hidden);
  hidden = std::move(routed.hidden);
  attended.weights.reset();
  hidden = tensor::add(residual, hidden);
  return hidden;
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  layer.attention.eager_only = true;
  layer.attention.sinks = p.add("self_attn.sinks", {axis(Axis::heads, c.heads)});
  add_projections(p, layer, c);
  layer.mixture = empty_mixture(c);
  layer.mixture.router = add_router(p, "mlp.router", c, true);
  Experts& experts = layer.mixture.experts;
  experts.gating = ExpertGating::clamped_turns;
  experts.stored_in_out = true;
  const Dimension count = axis(Axis::expert, c.mixture.experts);
  const Dimension ffn = axis(Axis::ffn, c.mixture.intermediate);
  const Dimension in_turns = axis(Axis::ffn, c.mixture.intermediate, 2);
  experts.gate_up = p.add("mlp.experts.gate_up_proj", {count, hidden_axis(c), in_turns});
  experts.gate_up_bias = p.add("mlp.experts.gate_up_proj_bias", {count, in_turns});
  experts.down = p.add("mlp.experts.down_proj", {count, ffn, hidden_axis(c)});
  experts.down_bias = p.add("mlp.experts.down_proj_bias", {count, hidden_axis(c)});
  add_norms(p, layer, c, NormKind::rms_cast_last);
  return layer;
}

}  // namespace

Expected<Architecture> build_gpt_oss(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 201088,
                                          .hidden = 2880,
                                          .intermediate = 2880,
                                          .layers = 36,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .head_dim = 64,
                                          .max_positions = 131072});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.qkv_bias = c.output_bias = fields.boolean("attention_bias", true);
  if (!fields.is_null("sliding_window")) c.window = fields.integer("sliding_window", 128, kMaxPositions);
  read_layer_types(fields, c, true, [](std::int64_t layer) { return layer % 2 == 0; });
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.form = RotaryForm::narrow;
  c.mixture.experts = fields.integer("num_local_experts", 128, kMaxExperts);
  c.mixture.top_k = fields.integer("num_experts_per_tok", 4, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.run = read_experts_run(fields);
  read_router_loss(fields, c.mixture);
  check_mixture(fields, c.mixture, "num_experts_per_tok");
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    Architecture arch = decoder(read, "gpt_oss", NormKind::rms_cast_last, kind);
    arch.masks_know_positions = false;
    return arch;
  });
}

Output forward_gpt_oss(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), decoder_layer);
}

}  // namespace ullage::model
