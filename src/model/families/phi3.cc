// Phi-3 (transformers: models/phi3/modeling_phi3.py): fused projections that are taken apart by slices.
#include "model/families/phi3.h"

namespace ullage::model {
namespace {

LayerKind phi3_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Dimension hidden = hidden_axis(c);
  const AxisPart heads{Axis::heads, c.heads, c.head_dim};
  const AxisPart kv_heads{Axis::kv_heads, c.kv_heads, c.head_dim};
  const Dimension fused{{heads, kv_heads, kv_heads}};
  layer.attention.o = p.linear("self_attn.o_proj", Dimension{{heads}}, hidden, false);
  layer.attention.qkv = p.linear("self_attn.qkv_proj", hidden, fused, false);
  add_fused_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const Tensor qkv = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  const std::int64_t key_at = a.heads * a.head_dim;
  const std::int64_t value_at = key_at + a.kv_heads * a.head_dim;
  Tensor query = tensor::slice(qkv, 2, 0, key_at);
  Tensor key = tensor::slice(qkv, 2, key_at, value_at);
  Tensor value = tensor::slice(qkv, 2, value_at, qkv.size(2));
  for (Tensor* x : {&query, &key, &value}) {
    Tensor heads = split_heads(*x, a.head_dim);
    *x = tensor::transpose(std::move(heads), 1, 2);
  }
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

Tensor phi3_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const auto dropout = [&](const Tensor& input) {
    return call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, input);
  };
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  Tensor dropped = dropout(hidden);
  hidden = tensor::add(residual, std::move(dropped));
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return fused_mlp(m, layer.mlp, x); }, hidden);
  dropped = dropout(hidden);
  hidden = tensor::add(residual, std::move(dropped));
  return hidden;
}

// Phi3Config knows no stretching but the long one, which yarn is another name of.
void check_rotary(Fields& fields, Rotary& rotary) {
  if (rotary.type == "yarn") rotary.type = "longrope";
  if (rotary.type == "default" || rotary.type == "longrope") return;
  fields.reject("rope_scaling", "Phi-3 stretches positions by longrope only; set that type or leave the field out");
}

Expected<DecoderConfig> read_phi3_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 32064, .hidden = 3072, .intermediate = 8192, .max_positions = 4096});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.residual_dropout = fields.probability("resid_pdrop", 0);
  if (fields.has("sliding_window")) c.window = fields.integer("sliding_window", 1, kMaxPositions);
  slide_everywhere(c);
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 1);
  c.rotary.form = RotaryForm::joined;
  check_rotary(fields, c.rotary);
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_phi3(const JsonObject& config) {
  return read_phi3_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "phi3", NormKind::rms, phi3_kind); });
}

Tensor fused_mlp(Modules& m, const Mlp& module, Tensor hidden) {
  Tensor up = call([&](Tensor x) { return m.linear(module.up, x); }, hidden);
  Tensor gate = up;
  std::vector<Tensor> halves = tensor::split(std::move(gate), up.size(2) / 2, 2);
  gate = std::move(halves[0]);
  up = std::move(halves[1]);
  Tensor activated = call([&](Tensor x) { return m.activation(module.activation, x); }, gate);
  up = tensor::mul(up, std::move(activated));
  return call([&](Tensor x) { return m.linear(module.down, x); }, up);
}

Output forward_phi3(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), phi3_layer);
}

}  // namespace ullage::model
