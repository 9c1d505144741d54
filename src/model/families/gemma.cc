// Gemma, Gemma 2 and Gemma 3 (transformers: models/{gemma,gemma2,gemma3}/modeling_*.py). Gemma's forward pass is
// Llama's with scaled embeddings and norms whose weights are centred on zero.
#include "model/families/gemma.h"

namespace ullage::model {
namespace {

constexpr NormKind kNorm = NormKind::rms_one_plus;

LayerKind gemma_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, kNorm);
  return layer;
}

// Norms on both sides of attention and feed-forward.
void add_sandwich_norms(ParameterList& p, LayerKind& layer, const DecoderConfig& c) {
  add_norms(p, layer, c, kNorm);
  layer.feedforward_norm = p.norm(kNorm, "pre_feedforward_layernorm", hidden_axis(c));
  layer.post_feedforward_norm = p.norm(kNorm, "post_feedforward_layernorm", hidden_axis(c));
}

LayerKind gemma2_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_gated_mlp(p, layer, c);
  add_sandwich_norms(p, layer, c);
  return layer;
}

LayerKind gemma3_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  const Dimension head = axis(Axis::hidden, c.head_dim);
  layer.attention.q_norm = p.norm(kNorm, "self_attn.q_norm", head);
  layer.attention.k_norm = p.norm(kNorm, "self_attn.k_norm", head);
  add_gated_mlp(p, layer, c);
  add_sandwich_norms(p, layer, c);
  return layer;
}

// Queries and keys are normed head by head once all three are transposed.
AttentionOutput gemma3_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
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

Tensor sandwich_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                      const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.feedforward_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = call([&](Tensor x) { return m.norm(layer.post_feedforward_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Tensor gemma2_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return sandwich_layer(m, layer, llama_attention, std::move(hidden), rotary, std::move(mask));
}

Tensor gemma3_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return sandwich_layer(m, layer, gemma3_attention, std::move(hidden), rotary, std::move(mask));
}

void refuse_two_directions(Fields& fields) {
  if (!fields.optional_boolean("use_bidirectional_attention", false)) return;
  fields.reject("use_bidirectional_attention", "attention to what follows is not modelled; set it to false");
}

DecoderConfig read_gemma(Fields& fields, const DecoderDefaults& defaults) {
  DecoderConfig c = read_decoder(fields, defaults);
  read_attention_bias(fields, c);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  refuse_two_directions(fields);
  return c;
}

Architecture scaled(Architecture architecture) {
  add_embedding_scale(architecture);
  return architecture;
}

// What Gemma 2 and 3 have in common; `period`: every so many layers one has no window.
DecoderConfig read_sandwich(Fields& fields, const DecoderDefaults& defaults, std::int64_t period) {
  DecoderConfig c = read_gemma(fields, defaults);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (!fields.is_null("sliding_window")) c.window = window;
  read_layer_types(fields, c, true, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
  return c;
}

// A number or null, which turns soft-capping off.
bool softcaps(Fields& fields, std::string_view key, bool fallback) {
  if (!fields.has(key)) return fallback && !fields.is_null(key);
  fields.number(key, 0);
  return true;
}

constexpr DecoderDefaults kSandwich{.vocab = 256000,
                                    .hidden = 2304,
                                    .intermediate = 9216,
                                    .layers = 26,
                                    .heads = 8,
                                    .kv_heads = 4,
                                    .head_dim = 256,
                                    .max_positions = 8192,
                                    .activation_key = "hidden_activation",
                                    .activation = "gelu_pytorch_tanh",
                                    .tied = true,
                                    .null_kv_heads = false};

// Layers with a window turn by frequencies of their own. Only types of layers that there are get any.
void add_rotaries(Architecture& arch, const Rotary& full, const Rotary& sliding) {
  arch.buffers.clear();
  arch.rotary = {};
  for (const LayerKind& kind : arch.kinds) {
    const bool slides = kind.attention.window.has_value();
    Rotary& rotary = slides ? arch.local_rotary : arch.rotary;
    rotary = slides ? sliding : full;
    rotary.buffer = arch.buffers.size();
    for (Buffer& buffer : rotary_buffers(rotary, slides ? "sliding_attention_" : "full_attention_")) {
      arch.buffers.push_back(std::move(buffer));
    }
  }
}

}  // namespace

Expected<Architecture> build_gemma(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_gemma(fields, {.vocab = 256000,
                                        .hidden = 3072,
                                        .intermediate = 24576,
                                        .layers = 28,
                                        .heads = 16,
                                        .kv_heads = 16,
                                        .head_dim = 256,
                                        .max_positions = 8192,
                                        .activation = "gelu_pytorch_tanh",
                                        .tied = true,
                                        .null_kv_heads = false});
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return scaled(decoder(read, "gemma", kNorm, gemma_kind));
  });
}

Expected<Architecture> build_gemma2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sandwich(fields, kSandwich, 2);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  const bool caps_scores = softcaps(fields, "attn_logit_softcapping", true);
  const bool caps_logits = softcaps(fields, "final_logit_softcapping", true);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch = scaled(decoder(read, "gemma2", kNorm, gemma2_kind));
    for (LayerKind& kind : arch.kinds) kind.attention.softcaps = caps_scores;
    if (caps_logits) arch.logits = LogitForm::softcapped;
    return arch;
  });
}

Expected<Architecture> build_gemma3(const JsonObject& config) {
  Fields fields(config);
  DecoderDefaults defaults = kSandwich;
  defaults.vocab = 262208;
  defaults.max_positions = 131072;
  DecoderConfig c = read_sandwich(fields, defaults, fields.integer("sliding_window_pattern", 6, kMaxLayers));
  // attn_logit_softcapping is read by the class, but its attention does not use it.
  const bool caps_logits = softcaps(fields, "final_logit_softcapping", false);
  const Rotary full = read_layer_rotary(fields, "full_attention", c.head_dim, c.max_positions);
  const Rotary sliding = read_layer_rotary(fields, "sliding_attention", c.head_dim, c.max_positions);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch = decoder(read, "gemma3_text", kNorm, gemma3_kind);
    add_rotaries(arch, full, sliding);
    if (caps_logits) arch.logits = LogitForm::softcapped;
    return scaled(std::move(arch));
  });
}

Output forward_gemma2(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), gemma2_layer);
}

Output forward_gemma3(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), gemma3_layer);
}

}  // namespace ullage::model
