// StableLM (transformers: models/stablelm/modeling_stablelm.py): a part of each head is turned; queries and keys may
// have a norm for each head, attention and feed-forward may run side by side.
#include "model/families/stablelm.h"

#include <fmt/core.h>

namespace ullage::model {
namespace {

// Norms without bias, one for each head.
constexpr std::int64_t kMostNorms = 1024;

struct StableLmConfig {
  DecoderConfig decoder;
  bool norms_heads = false;
  bool parallel = false;
};

// Gives back the first; the others follow.
Norm add_head_norms(ParameterList& p, const std::string& name, std::int64_t heads, std::int64_t head_dim) {
  Norm first;
  for (std::int64_t i = 0; i < heads; ++i) {
    const ParameterRef weight = p.add(fmt::format("{}.norms.{}.weight", name, i), {axis(Axis::hidden, head_dim)});
    if (i == 0) first = {NormKind::layer, weight, {}};
  }
  return first;
}

Tensor norm_heads(Modules& m, const Norm& first, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const std::vector<Tensor> heads = tensor::split(x, 1, 1);
  std::vector<Tensor> normed;
  Norm norm = first;
  for (const Tensor& head : heads) {
    normed.push_back(call([&](Tensor h) { return m.norm(norm, h); }, head));
    ++norm.weight.index;
  }
  return tensor::cat(std::move(normed), 1);
}

struct Cut {
  Tensor turned;
  Tensor rest;
};

Cut cut(const Tensor& x, std::int64_t dim) {
  Cut parts;
  parts.turned = tensor::slice(x, -1, 0, dim);
  parts.rest = tensor::slice(x, -1, dim, x.size(-1));
  return parts;
}

AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const auto project = [&](const Linear& linear) {
    return call([&](Tensor x) { return m.linear(linear, x); }, hidden);
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  for (Tensor* x : {&query, &key, &value}) {
    Tensor heads = split_heads(*x, a.head_dim);
    *x = tensor::transpose(std::move(heads), 1, 2);
  }
  if (a.q_norm.weight) {
    query = call([&](Tensor x) { return norm_heads(m, a.q_norm, std::move(x)); }, query);
    key = call([&](Tensor x) { return norm_heads(m, a.k_norm, std::move(x)); }, key);
  }
  const std::int64_t turned = rotary.cos.size(-1);
  Cut query_parts = cut(query, turned);
  Cut key_parts = cut(key, turned);
  m.apply_rotary(query_parts.turned, key_parts.turned, rotary);
  query = tensor::cat({query_parts.turned, query_parts.rest}, -1);
  key = tensor::cat({key_parts.turned, key_parts.rest}, -1);
  return attend_rotated(m, a, std::move(query), std::move(key), std::move(value), std::move(mask));
}

// The outputs of attention and feed-forward keep their names until the layer returns.
Tensor stablelm_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  const AttentionOutput attended =
      call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  Tensor fed;
  if (layer.post_attention_norm.weight) {
    residual = tensor::add(residual, attended.output);
    Tensor normed = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, residual);
    fed = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, std::move(normed));
    fed = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, fed);
    return tensor::add(residual, fed);
  }
  fed = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  fed = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, fed);
  Tensor sum = tensor::add(residual, attended.output);
  return tensor::add(std::move(sum), fed);
}

LayerKind stablelm_kind(const StableLmConfig& config) {
  const DecoderConfig& c = config.decoder;
  LayerKind layer = empty_layer(c, {});
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  if (config.norms_heads) {
    layer.attention.q_norm = add_head_norms(p, "self_attn.q_layernorm", c.heads, c.head_dim);
    layer.attention.k_norm = add_head_norms(p, "self_attn.k_layernorm", c.kv_heads, c.head_dim);
  }
  add_gated_mlp(p, layer, c);
  layer.input_norm = p.layer_norm("input_layernorm", hidden_axis(c));
  if (!config.parallel) layer.post_attention_norm = p.layer_norm("post_attention_layernorm", hidden_axis(c));
  return layer;
}

Expected<StableLmConfig> read_stablelm_config(const JsonObject& config) {
  Fields fields(config);
  StableLmConfig out;
  out.decoder = read_decoder(fields, {.vocab = 50304,
                                      .hidden = 2560,
                                      .intermediate = 6912,
                                      .kv_heads = 32,
                                      .max_positions = 4096,
                                      .null_kv_heads = false});
  DecoderConfig& c = out.decoder;
  if (c.heads * c.head_dim != c.hidden) {
    fields.reject("head_dim", fmt::format("{} x {} heads is not hidden_size {}; StableLM has no other width",
                                          c.head_dim, c.heads, c.hidden));
  }
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.residual_dropout = fields.probability("hidden_dropout", 0);
  c.qkv_bias = fields.boolean("use_qkv_bias", false);
  out.norms_heads = fields.boolean("qk_layernorm", false);
  if (out.norms_heads && c.heads > kMostNorms) {
    fields.reject("qk_layernorm",
                  fmt::format("{} heads with a norm each are more than the {} that are modelled", c.heads, kMostNorms));
  }
  out.parallel = fields.boolean("use_parallel_residual", false);
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 0.25);
  return finish(fields, std::move(out));
}

}  // namespace

Expected<Architecture> build_stablelm(const JsonObject& config) {
  return read_stablelm_config(config).map([](const StableLmConfig& c) {
    return decoder(c.decoder, "stablelm", NormKind::layer,
                   [&](const DecoderConfig&, const LayerTraits&) { return stablelm_kind(c); });
  });
}

Output forward_stablelm(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), stablelm_layer);
}

}  // namespace ullage::model
