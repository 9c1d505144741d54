// GPT-Neo (transformers: models/gpt_neo/modeling_gpt_neo.py).
#include "model/families/gpt_neo.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

using tensor::Op;
using tensor::RegionOutput;

struct GptNeoConfig {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  Activation activation = Activation::gelu_new;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool tied = true;
};

// The layers that attention_types names: [[["global", "local"], 12]]; nothing: it is no such list. Which of them look
// at a window only does not change what is allocated.
std::optional<std::int64_t> named_layers(const Json& types) {
  if (!types.is_array()) return std::nullopt;
  std::int64_t total = 0;
  for (const Json& group : types) {
    if (!group.is_array() || group.size() != 2 || !group[0].is_array() || !group[1].is_number_integer()) {
      return std::nullopt;
    }
    const auto times = group[1].get<std::int64_t>();
    if (times < 0 || times > kMaxLayers) return std::nullopt;
    total += times * static_cast<std::int64_t>(group[0].size());
  }
  return total;
}

void check_attention_types(Fields& fields, std::int64_t layers) {
  constexpr std::string_view kKey = "attention_types";
  const Json* types = fields.config().find(kKey);
  if (types == nullptr) return;
  const auto named = named_layers(*types);
  if (!named) {
    fields.reject(kKey, fmt::format("{} is no such list; expected one like [[[\"global\", \"local\"], 12]]",
                                    value_excerpt(*types)));
  } else if (*named != layers) {
    fields.reject(kKey, fmt::format("names {} layers, but there are {}; change one of them", *named, layers));
  }
}

Expected<GptNeoConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  GptNeoConfig c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50257, kMaxVocab);
  c.positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.hidden = fields.integer("hidden_size", 2048, kMaxWidth);
  c.layers = either("num_layers", "num_hidden_layers", 24, kMaxLayers);
  c.heads = either("num_heads", "num_attention_heads", 16, kMaxWidth);
  c.inner = fields.optional_integer("intermediate_size", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_dropout", 0);
  c.embedding_dropout = fields.probability("embed_dropout", 0);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "num_heads", c.heads, "hidden_size", c.hidden);
  check_attention_types(fields, c.layers);
  return finish(fields, std::move(c));
}

Tensor heads_first(Tensor x_in, const Attention& a) {
  Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  x = tensor::view(std::move(x), {batch, seq, a.heads, a.head_dim});
  return tensor::transpose(std::move(x), 1, 2);
}

// Scores in fp32. What a layer's own table of Booleans hides is replaced before the mask hides it once more. The table
// is the layer's buffer, so a view of it costs nothing.
AttentionOutput attend(Modules& m, const Attention& a, const Tensor& query_in, const Tensor& key_in,
                       const Tensor& value, const Tensor& table, const Tensor& mask) {
  const tensor::Scope named(m.context(), m.context().intern("attention"));
  const Tensor query = tensor::to(query_in, DType::f32);
  const Tensor key = tensor::to(key_in, DType::f32);
  const std::int64_t seq = query.size(2);
  const std::int64_t keys = key.size(2);
  Tensor weights;
  {
    Tensor turned = tensor::transpose(key, -1, -2);
    weights = tensor::matmul(query, std::move(turned));
  }
  Tensor seen = tensor::slice(table, 2, keys - seq, keys);
  seen = tensor::slice(std::move(seen), 3, 0, keys);
  const Tensor lowest = tensor::empty(m.context(), Op::cast, {}, weights.dtype());
  weights = tensor::where(seen, weights, lowest);
  weights = tensor::add(weights, mask);
  weights = tensor::softmax(weights);
  weights = tensor::to(weights, value.dtype());
  weights = call([&](Tensor x) { return m.dropout(a.dropout, x); }, weights);
  Tensor out = tensor::matmul(weights, value);
  return {std::move(out), std::move(weights)};
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& mask) {
  const Attention& a = layer.attention;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor query = call([&](Tensor x) { return m.linear(a.q, x); }, hidden);
  Tensor key = call([&](Tensor x) { return m.linear(a.k, x); }, hidden);
  Tensor value = call([&](Tensor x) { return m.linear(a.v, x); }, hidden);
  query = heads_first(std::move(query), a);
  key = heads_first(std::move(key), a);
  value = heads_first(std::move(value), a);
  m.extend_past(key, value);
  AttentionOutput attended = attend(m, a, query, key, value, m.buffer(0), mask);
  Tensor out = tensor::transpose(std::move(attended.output), 1, 2);
  out = tensor::contiguous(std::move(out));
  out = tensor::view(std::move(out), {batch, seq, a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  out = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor feed_forward(Modules& m, const LayerKind& layer, const Tensor& hidden) {
  const Tensor out = m.mlp(layer.mlp, hidden);
  return call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
}

RegionOutput block(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer, std::move(x), mask); }, hidden);
  hidden = tensor::add(attended.output, residual);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  const Tensor wide = call([&](Tensor x) { return feed_forward(m, layer, x); }, hidden);
  hidden = tensor::add(residual, wide);
  return {std::move(hidden), std::move(attended.weights)};
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask({}, embeds, {{}, true, false, true});
  const Tensor position_embeds = call([&](Tensor x) { return m.embedding(arch.positions, x); }, positions);
  Tensor hidden = tensor::add(embeds, position_embeds);
  hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, hidden);
  Tensor weights;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, mask](Tensor x, Tensor) { return block(m, kind, std::move(x), mask); }, hidden, {}, &weights);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind block_kind(const GptNeoConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.inner);
  kind.input_norm = p.layer_norm("ln_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.eager_only = true;
  kind.attention.k = p.linear("attn.attention.k_proj", hidden, heads, false);
  kind.attention.v = p.linear("attn.attention.v_proj", hidden, heads, false);
  kind.attention.q = p.linear("attn.attention.q_proj", hidden, heads, false);
  kind.attention.o = p.linear("attn.attention.out_proj", heads, hidden, true);
  kind.buffers.push_back({"attn.attention.bias", {1, 1, c.positions, c.positions}, DType::boolean, false, false});
  kind.post_attention_norm = p.layer_norm("ln_2", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.c_fc", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.c_proj", ffn, hidden, true);
  kind.residual_dropout = c.residual_dropout;
  return kind;
}

Architecture network(const GptNeoConfig& c) {
  Architecture arch;
  arch.family = "gpt_neo";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.layer_prefix = "transformer.h.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.wte", vocab, hidden);
  arch.positions = p.embedding("transformer.wpe", axis(Axis::position, c.positions), hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("transformer.ln_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  arch.embedding_dropout = c.embedding_dropout;
  return arch;
}

}  // namespace

Expected<Architecture> build_gpt_neo(const JsonObject& config) { return read_config(config).map(network); }

Output forward_gpt_neo(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
