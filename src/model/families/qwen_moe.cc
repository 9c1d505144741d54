// Qwen2-MoE and Qwen3-MoE (transformers: models/qwen2_moe/modeling_qwen2_moe.py, models/qwen3_moe/
// modeling_qwen3_moe.py).
#include "model/families/qwen_moe.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/moe.h"
#include "model/families/qwen.h"

namespace ullage::model {
namespace {

// --- Qwen2-MoE: an expert for every token beside the chosen ones, scaled by a gate of its own ------------------------

Tensor shared_block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const Mixture& mixture = layer.mixture;
  const tensor::Dims sizes = hidden.sizes();
  const Tensor tokens = tokens_of(hidden);
  Tensor shared = call([&](Tensor x) { return m.mlp(mixture.shared, x); }, tokens);
  const Routing routing = call([&](Tensor x) { return route_by_softmax(m, mixture, x); }, tokens);
  m.keep_router_logits(routing.logits);
  Tensor out = run_experts(m, mixture, tokens, routing.chosen, routing.weights);
  {
    Tensor gate = call([&](Tensor x) { return m.linear(mixture.shared_gate, x); }, tokens);
    gate = tensor::sigmoid(std::move(gate));
    shared = tensor::mul(std::move(gate), shared);
  }
  out = tensor::add(out, shared);
  return tensor::reshape(out, sizes);
}

LayerKind qwen2_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  if (traits.sparse) {
    layer.mixture = empty_mixture(c);
    layer.mixture.router = add_router(p, "mlp.gate", c);
    add_experts(p, "mlp.experts", c, layer.mixture.experts);
    layer.mixture.shared = add_mlp(p, "mlp.shared_expert", c, c.mixture.shared_intermediate);
    layer.mixture.shared_gate = p.linear("mlp.shared_expert_gate", hidden_axis(c), axis(Axis::ffn, 1), false);
  } else {
    add_gated_mlp(p, layer, c);
  }
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

// --- Qwen3-MoE -------------------------------------------------------------------------------------------------------

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  const Tensor tokens = tokens_of(hidden);
  const Routing routing = call([&](Tensor x) { return route_by_softmax(m, layer.mixture, x); }, tokens);
  m.keep_router_logits(routing.logits);
  const Tensor out = run_experts(m, layer.mixture, tokens, routing.chosen, routing.weights);
  return tensor::reshape(out, sizes);
}

// --- configurations --------------------------------------------------------------------------------------------------

std::vector<std::int64_t> read_dense_layers(Fields& fields) {
  constexpr std::string_view kKey = "mlp_only_layers";
  std::vector<std::int64_t> out;
  const Json* value = fields.config().find(kKey);
  if (value == nullptr) return out;
  if (!value->is_array()) fields.reject(kKey, "expected a list of layer numbers");
  for (const Json& item : *value) {
    if (item.is_number_integer()) out.push_back(item.get<std::int64_t>());
    else fields.reject(kKey, "expected a list of layer numbers");
  }
  return out;
}

// Both masks are always made; unless use_sliding_window is on, the window is 0 tokens wide and no layer has it.
void read_qwen2_windows(Fields& fields, DecoderConfig& c) {
  const bool used = fields.boolean("use_sliding_window", false);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  const std::int64_t slides_below = fields.count("max_window_layers", 28, kMaxLayers);
  const std::vector<bool> named = fields.sliding_layers("layer_types", c.layers);
  if (used && fields.is_null("sliding_window")) {
    fields.reject("sliding_window", "is null, but use_sliding_window is on; give its width in tokens");
  }
  c.window = used ? window : 0;
  c.mask_windows = {std::nullopt, c.window};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    c.traits[at].slides = named.empty() ? used && i % 2 == 0 && i < slides_below : named[at];
  }
}

}  // namespace

void read_sparse_layers(Fields& fields, DecoderConfig& c) {
  const std::int64_t step = fields.integer("decoder_sparse_step", 1, kMaxLayers);
  const std::vector<std::int64_t> dense = read_dense_layers(fields);
  c.traits.resize(static_cast<std::size_t>(c.layers));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const bool named = std::find(dense.begin(), dense.end(), i) != dense.end();
    c.traits[static_cast<std::size_t>(i)].sparse = !named && (i + 1) % step == 0;
  }
}

void read_qwen_mixture(Fields& fields, DecoderConfig& c, const MixtureConfig& defaults) {
  c.mixture.experts = fields.integer("num_experts", defaults.experts, kMaxExperts);
  c.mixture.top_k = fields.integer("num_experts_per_tok", defaults.top_k, kMaxExperts);
  c.mixture.intermediate = fields.integer("moe_intermediate_size", defaults.intermediate, kMaxWidth);
  c.mixture.normalizes = fields.boolean("norm_topk_prob", false);
  c.mixture.run = read_experts_run(fields);
  read_router_loss(fields, c.mixture);
  check_mixture(fields, c.mixture, "num_experts_per_tok");
}

LayerKind qwen3_sparse_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  const Dimension head{{{Axis::hidden, c.head_dim}}};
  layer.attention.q_norm = p.rms_norm("self_attn.q_norm", head);
  layer.attention.k_norm = p.rms_norm("self_attn.k_norm", head);
  if (traits.sparse) {
    layer.mixture = empty_mixture(c);
    add_experts(p, "mlp.experts", c, layer.mixture.experts);
    layer.mixture.router = add_router(p, "mlp.gate", c);
  } else {
    add_gated_mlp(p, layer, c);
  }
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Tensor qwen3_moe_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, qwen3_attention, sparse_or_dense<block>, std::move(hidden), rotary, std::move(mask));
}

Expected<Architecture> build_qwen2_moe(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 151936,
                                          .hidden = 2048,
                                          .intermediate = 5632,
                                          .layers = 24,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .max_positions = 32768});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.qkv_bias = fields.boolean("qkv_bias", true);
  read_sparse_layers(fields, c);
  read_qwen2_windows(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  read_qwen_mixture(fields, c, {.experts = 60, .top_k = 4, .intermediate = 1408});
  c.mixture.shared_intermediate = fields.integer("shared_expert_intermediate_size", 5632, kMaxWidth);
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "qwen2_moe", NormKind::rms, qwen2_kind);
  });
}

Expected<Architecture> build_qwen3_moe(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 151936,
                                          .hidden = 2048,
                                          .intermediate = 6144,
                                          .layers = 24,
                                          .kv_heads = 4,
                                          .max_positions = 32768,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  const bool slides = fields.boolean("use_sliding_window", false);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (slides && !fields.is_null("sliding_window")) c.window = window;
  slide_everywhere(c);
  read_sparse_layers(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  read_qwen_mixture(fields, c, {.experts = 128, .top_k = 8, .intermediate = 768});
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "qwen3_moe", NormKind::rms, qwen3_sparse_kind);
  });
}

Output forward_qwen2_moe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, llama_attention, sparse_or_dense<shared_block>, std::move(hidden), rotary,
                              std::move(mask));
      });
}

Output forward_qwen3_moe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), qwen3_moe_layer);
}

}  // namespace ullage::model
