// OLMo, OLMo 2 and Olmo 3 (transformers: models/{olmo,olmo2,olmo3}/modeling_*.py).
#include "model/families/olmo.h"

namespace ullage::model {
namespace {

constexpr NormKind kNorm2 = NormKind::rms_cast_last;

LayerKind olmo_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::layer_fp32);
  return layer;
}

LayerKind olmo2_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  layer.attention.q_norm = p.norm(kNorm2, "self_attn.q_norm", axis(Axis::heads, c.heads, c.head_dim));
  layer.attention.k_norm = p.norm(kNorm2, "self_attn.k_norm", axis(Axis::kv_heads, c.kv_heads, c.head_dim));
  add_gated_mlp(p, layer, c);
  layer.post_attention_norm = p.norm(kNorm2, "post_attention_layernorm", hidden_axis(c));
  layer.post_feedforward_norm = p.norm(kNorm2, "post_feedforward_layernorm", hidden_axis(c));
  return layer;
}

struct Projected {
  Tensor query, key, value;
};

Projected project(Modules& m, const Attention& a, const Tensor& hidden) {
  const auto run = [&](const Linear& linear) { return call([&](Tensor x) { return m.linear(linear, x); }, hidden); };
  Projected out;
  out.query = run(a.q);
  out.key = run(a.k);
  out.value = run(a.v);
  return out;
}

void take_heads_apart(Projected& x, std::int64_t head_dim) {
  for (Tensor* part : {&x.query, &x.key, &x.value}) {
    Tensor heads = split_heads(*part, head_dim);
    *part = tensor::transpose(std::move(heads), 1, 2);
  }
}

AttentionOutput attend_projected(Modules& m, const Attention& a, Projected x, const RotaryTables& rotary, Tensor mask) {
  take_heads_apart(x, a.head_dim);
  return attend(m, a, std::move(x.query), std::move(x.key), std::move(x.value), rotary, std::move(mask));
}

AttentionOutput olmo_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Projected x = project(m, a, hidden);
  if (a.clips) {
    for (const Tensor* part : {&x.query, &x.key, &x.value}) tensor::clamp_view_in_place(*part);
  }
  return attend_projected(m, a, std::move(x), rotary, std::move(mask));
}

}  // namespace

AttentionOutput olmo2_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                Tensor mask) {
  const auto linear = [&](const Linear& module) { return call([&](Tensor x) { return m.linear(module, x); }, hidden); };
  const auto norm = [&](const Norm& module, Tensor input) {
    return call([&](Tensor x) { return m.norm(module, x); }, std::move(input));
  };
  Projected x;
  Tensor wide = linear(a.q);
  x.query = norm(a.q_norm, std::move(wide));
  wide = linear(a.k);
  x.key = norm(a.k_norm, std::move(wide));
  x.value = linear(a.v);
  return attend_projected(m, a, std::move(x), rotary, std::move(mask));
}

Tensor post_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                       const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = call([&](Tensor x) { return m.norm(layer.post_feedforward_norm, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

namespace {

Tensor olmo_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, olmo_attention, std::move(hidden), rotary, std::move(mask));
}

Tensor olmo2_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return post_norm_layer(m, layer, olmo2_attention, std::move(hidden), rotary, std::move(mask));
}

DecoderConfig read_olmo(Fields& fields) {
  DecoderConfig c = read_decoder(fields, {.vocab = 50304});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return c;
}

}  // namespace

Expected<Architecture> build_olmo(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_olmo(fields);
  c.rotary.form = RotaryForm::halves_fp32;
  const bool clips = fields.has("clip_qkv");
  if (clips) fields.number("clip_qkv", 0);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch = decoder(read, "olmo", NormKind::layer_fp32, olmo_kind);
    for (LayerKind& kind : arch.kinds) kind.attention.clips = clips;
    return arch;
  });
}

Expected<Architecture> build_olmo2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_olmo(fields);
  c.rotary.form = RotaryForm::halves_fp32;
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "olmo2", kNorm2, olmo2_kind);
  });
}

Expected<Architecture> build_olmo3(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_olmo(fields);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (!fields.is_null("sliding_window")) c.window = window;
  read_layer_types(fields, c, true, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
  c.rotary.form = RotaryForm::halves_back;
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "olmo3", kNorm2, olmo2_kind);
  });
}

Output forward_olmo(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), olmo_layer);
}

Output forward_olmo2(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), olmo2_layer);
}

}  // namespace ullage::model
