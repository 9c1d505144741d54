// GPT-NeoX (transformers: models/gpt_neox/modeling_gpt_neox.py).
#include "model/families/gpt_neox.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"
#include "model/families/partial_rotary.h"

namespace ullage::model {
namespace {

struct GptNeoxConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t max_positions = 0;
  Activation activation = Activation::gelu;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  bool attention_bias = true;
  bool parallel = true;
  bool tied = false;
  Rotary rotary;
};

Expected<GptNeoxConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  GptNeoxConfig c;
  c.vocab = fields.integer("vocab_size", 50432, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 6144, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 44, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 64, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 24576, kMaxWidth);
  c.activation = fields.activation("hidden_act", "gelu");
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.hidden_dropout = fields.probability("hidden_dropout", 0);
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.tied = fields.boolean("tie_word_embeddings", false);
  c.parallel = fields.boolean("use_parallel_residual", true);
  c.attention_bias = fields.boolean("attention_bias", true);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  const double rotary_part = fields.number("rotary_pct", 0.25);
  if (!(rotary_part > 0 && rotary_part <= 1)) {
    fields.reject("rotary_pct",
                  fmt::format("{} is no share of a head; expected more than 0 and at most 1", rotary_part));
    return finish(fields, std::move(c));
  }
  c.rotary = read_partial_rotary(fields, c.hidden / c.heads, c.max_positions, rotary_part);
  return finish(fields, std::move(c));
}

// What is turned is put together with what passes once both query and key have been turned.
void apply_rotary(Modules& m, Tensor& query, Tensor& key, const RotaryTables& tables) {
  const std::int64_t dims = tables.cos.size(-1);
  const TurnedAndPassed q = split_rotated(query, dims);
  const TurnedAndPassed k = split_rotated(key, dims);
  Tensor turned_query = q.turned;
  Tensor turned_key = k.turned;
  m.apply_rotary(turned_query, turned_key, tables);
  turned_query = tensor::cat({turned_query, q.passed}, -1);
  turned_key = tensor::cat({turned_key, k.passed}, -1);
  query = std::move(turned_query);
  key = std::move(turned_key);
}

AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  fused = tensor::view(std::move(fused), {batch, seq, a.heads, 3 * a.head_dim});
  fused = tensor::transpose(std::move(fused), 1, 2);
  std::vector<Tensor> parts = tensor::split(fused, a.head_dim, -1);
  Tensor query = std::move(parts[0]);
  Tensor key = std::move(parts[1]);
  Tensor value = std::move(parts[2]);
  apply_rotary(m, query, key, rotary);
  m.extend_past(key, value);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor feed_forward(Modules& m, const LayerKind& layer, const Tensor& hidden) {
  Tensor out;
  {
    const Tensor normed = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
    out = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, normed);
  }
  return call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, std::move(out));
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  AttentionOutput attended;
  {
    const Tensor normed = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
    attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, normed);
  }
  // The probabilities keep a name until the layer returns.
  Tensor attention_output = std::move(attended.output);
  attention_output = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, attention_output);
  if (!layer.parallel) {
    attention_output = tensor::add(attention_output, hidden);
    const Tensor mlp_output = feed_forward(m, layer, attention_output);
    return tensor::add(mlp_output, attention_output);
  }
  const Tensor mlp_output = feed_forward(m, layer, hidden);
  Tensor sum = tensor::add(mlp_output, attention_output);
  return tensor::add(std::move(sum), hidden);
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask({}, embeds);
  Tensor hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeds);
  const RotaryTables rotary = m.rotary(arch.rotary, hidden, positions);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i,
        [&m, &kind, rotary, mask, positions](Tensor x, Tensor) {
          return decoder_layer(m, kind, std::move(x), rotary, mask);
        },
        hidden);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind layer_kind(const GptNeoxConfig& c) {
  LayerKind kind;
  kind.name = "layer";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.input_norm = p.layer_norm("input_layernorm", hidden);
  kind.post_attention_norm = p.layer_norm("post_attention_layernorm", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.groups_keys = false;
  kind.attention.fused_heads = FusedHeads::by_head;
  // Query, key and value of one head lie together.
  kind.attention.qkv = p.linear("attention.query_key_value", hidden,
                                axis(Axis::heads, c.heads, 3 * (c.hidden / c.heads)), c.attention_bias);
  kind.attention.o = p.linear("attention.dense", heads, hidden, c.attention_bias);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.dense_h_to_4h", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.dense_4h_to_h", ffn, hidden, true);
  kind.residual_dropout = c.hidden_dropout;
  kind.parallel = c.parallel;
  return kind;
}

Architecture network(const GptNeoxConfig& c) {
  Architecture arch;
  arch.family = "gpt_neox";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "gpt_neox.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("gpt_neox.embed_in", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("gpt_neox.final_layer_norm", hidden);
  arch.head = p.linear("embed_out", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  arch.embedding_dropout = c.hidden_dropout;
  arch.rotary = c.rotary;
  arch.buffers = rotary_buffers(c.rotary);
  return arch;
}

}  // namespace

Expected<Architecture> build_gpt_neox(const JsonObject& config) { return read_config(config).map(network); }

Output forward_gpt_neox(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
