// Cohere and Cohere 2 (transformers: models/{cohere,cohere2}/modeling_*.py): attention and feed-forward side by side
// behind one norm.
#include "model/families/cohere.h"

namespace ullage::model {
namespace {

constexpr NormKind kNorm = NormKind::layer_composed;

LayerKind cohere_kind(const DecoderConfig& c, const LayerTraits& traits, bool norms_heads) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  if (norms_heads) {
    const Dimension width = axis(Axis::hidden, c.head_dim);
    layer.attention.q_norm = {kNorm, p.add("self_attn.q_norm.weight", {axis(Axis::heads, c.heads), width}), {}};
    layer.attention.k_norm = {kNorm, p.add("self_attn.k_norm.weight", {axis(Axis::kv_heads, c.kv_heads), width}), {}};
  }
  add_gated_mlp(p, layer, c);
  layer.input_norm = p.norm(kNorm, "input_layernorm", hidden_axis(c));
  return layer;
}

AttentionOutput cohere_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                 Tensor mask) {
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
  for (Tensor* x : {&query, &key, &value}) *x = tensor::transpose(*x, 1, 2);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

Tensor parallel_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                      const RotaryTables& rotary, Tensor mask) {
  const Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  const AttentionOutput attended =
      call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  const Tensor fed = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  Tensor sum = tensor::add(residual, attended.output);
  hidden = tensor::add(std::move(sum), fed);
  return hidden;
}

Tensor cohere_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return parallel_layer(m, layer, cohere_attention, std::move(hidden), rotary, std::move(mask));
}

Tensor cohere2_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return parallel_layer(m, layer, llama_attention, std::move(hidden), rotary, std::move(mask));
}

DecoderConfig read_cohere(Fields& fields) {
  DecoderConfig c = read_decoder(fields, {.vocab = 256000,
                                          .hidden = 8192,
                                          .intermediate = 22528,
                                          .layers = 40,
                                          .heads = 64,
                                          .max_positions = 8192,
                                          .tied = true});
  read_attention_bias(fields, c);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.form = RotaryForm::neighbours;
  return c;
}

Architecture multiplied(Architecture architecture) {
  architecture.logits = LogitForm::multiplied;
  return architecture;
}

}  // namespace

Expected<Architecture> build_cohere(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_cohere(fields);
  const bool norms_heads = fields.optional_boolean("use_qk_norm", false);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return multiplied(decoder(read, "cohere", kNorm, [&](const DecoderConfig& d, const LayerTraits& traits) {
      return cohere_kind(d, traits, norms_heads);
    }));
  });
}

// Layers with a window turn, the others know no positions.
Expected<Architecture> build_cohere2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_cohere(fields);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (!fields.is_null("sliding_window")) c.window = window;
  const std::int64_t pattern = fields.integer("sliding_window_pattern", 4, kMaxLayers);
  read_layer_types(fields, c, true, [&](std::int64_t layer) { return (layer + 1) % pattern != 0; });
  for (LayerTraits& traits : c.traits) traits.rotates = traits.slides;
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return multiplied(decoder(read, "cohere2", kNorm, [](const DecoderConfig& d, const LayerTraits& traits) {
      return cohere_kind(d, traits, false);
    }));
  });
}

Output forward_cohere(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), cohere_layer);
}

Output forward_cohere2(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), cohere2_layer);
}

}  // namespace ullage::model
