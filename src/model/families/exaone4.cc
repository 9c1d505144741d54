// EXAONE 4 (transformers: models/exaone4/modeling_exaone4.py): norms behind attention and feed-forward and on the heads
// of queries and keys; in a model with a window, layers without one know no positions.
#include "model/families/exaone4.h"

#include "model/families/olmo.h"

namespace ullage::model {
namespace {

LayerKind exaone4_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  const Dimension head{{{Axis::hidden, c.head_dim}}};
  layer.attention.q_norm = p.rms_norm("self_attn.q_norm", head);
  layer.attention.k_norm = p.rms_norm("self_attn.k_norm", head);
  add_gated_mlp(p, layer, c);
  layer.post_attention_norm = p.rms_norm("post_attention_layernorm", hidden_axis(c));
  layer.post_feedforward_norm = p.rms_norm("post_feedforward_layernorm", hidden_axis(c));
  return layer;
}

AttentionOutput exaone4_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                  Tensor mask) {
  const auto project = [&](const Linear& linear) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = split_heads(std::move(x), a.head_dim);
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  query = call([&](Tensor x) { return m.norm(a.q_norm, x); }, query);
  key = call([&](Tensor x) { return m.norm(a.k_norm, x); }, key);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

// The class divides by a pattern of 0 where there is neither a window nor a list.
void read_windows(Fields& fields, DecoderConfig& c) {
  constexpr std::string_view kList = "layer_types";
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (!fields.is_null("sliding_window")) c.window = window;
  std::int64_t pattern = 1;
  if (!fields.has(kList) && !c.window)
    fields.reject(kList, "is absent and sliding_window is null; list full_attention for each layer");
  else if (!fields.has(kList)) pattern = fields.integer("sliding_window_pattern", 4, kMaxLayers);
  read_layer_types(fields, c, false, [&](std::int64_t layer) { return (layer + 1) % pattern != 0; });
  for (LayerTraits& traits : c.traits) traits.rotates = traits.slides || !c.window;
}

Expected<DecoderConfig> read_exaone4_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c =
      read_decoder(fields, {.vocab = 102400, .intermediate = 16384, .kv_heads = 32, .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_windows(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Tensor exaone4_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return post_norm_layer(m, layer, exaone4_attention, std::move(hidden), rotary, std::move(mask));
}

}  // namespace

Expected<Architecture> build_exaone4(const JsonObject& config) {
  return read_exaone4_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "exaone4", NormKind::rms, exaone4_kind); });
}

Output forward_exaone4(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), exaone4_layer);
}

}  // namespace ullage::model
