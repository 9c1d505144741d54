// Qwen2 and Qwen3 (transformers: models/qwen2/modeling_qwen2.py, models/qwen3/modeling_qwen3.py). Qwen2's forward pass
// is Llama's.
#include "model/families/qwen.h"

#include "model/families/llama.h"

namespace ullage::model {
void read_qwen_windows(Fields& fields, DecoderConfig& c, std::int64_t first_by_default) {
  const bool used = fields.boolean("use_sliding_window", false);
  const std::int64_t window = fields.optional_integer("sliding_window", 4096, kMaxPositions);
  if (used && !fields.is_null("sliding_window")) c.window = window;
  const std::int64_t first = fields.count("max_window_layers", first_by_default, kMaxLayers);
  read_layer_types(fields, c, false, [&](std::int64_t layer) { return c.window && layer >= first; });
}

LayerKind qwen3_dense_kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  const Dimension head{{{Axis::hidden, c.head_dim}}};
  layer.attention.q_norm = p.rms_norm("self_attn.q_norm", head);
  layer.attention.k_norm = p.rms_norm("self_attn.k_norm", head);
  add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

namespace {

DecoderConfig read_qwen(Fields& fields, std::int64_t head_dim) {
  DecoderConfig c = read_decoder(
      fields, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .head_dim = head_dim, .max_positions = 32768});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_qwen_windows(fields, c, 28);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return c;
}

}  // namespace

Expected<Architecture> build_qwen2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_qwen(fields, 0);
  c.qkv_bias = true;
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "qwen2", NormKind::rms, llama_kind);
  });
}

Expected<Architecture> build_qwen3(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_qwen(fields, 128);
  read_attention_bias(fields, c);
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "qwen3", NormKind::rms, qwen3_dense_kind);
  });
}

AttentionOutput qwen3_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                Tensor mask) {
  const auto project = [&](const Linear& linear, const Norm* norm) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = split_heads(std::move(x), a.head_dim);
    if (norm != nullptr) x = call([&](Tensor h) { return m.norm(*norm, h); }, std::move(x));
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q, &a.q_norm);
  Tensor key = project(a.k, &a.k_norm);
  Tensor value = project(a.v, nullptr);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

Output forward_qwen3(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, qwen3_attention, std::move(hidden), rotary, std::move(mask));
      });
}

}  // namespace ullage::model
