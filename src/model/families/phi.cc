// Phi 1, 1.5 and 2 (transformers: models/phi/modeling_phi.py).
#include "model/families/phi.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"
#include "model/families/partial_rotary.h"

namespace ullage::model {
namespace {

struct PhiConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  Activation activation = Activation::gelu_new;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool head_norms = false;
  bool tied = false;
  Rotary rotary;
};

Expected<PhiConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  PhiConfig c;
  c.vocab = fields.integer("vocab_size", 51200, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 2048, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 8192, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 24, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.kv_heads = fields.optional_integer("num_key_value_heads", c.heads, kMaxWidth);
  c.residual_dropout = fields.probability("resid_pdrop", 0);
  c.embedding_dropout = fields.probability("embd_pdrop", 0);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.activation = fields.activation("hidden_act", "gelu_new");
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.head_norms = fields.boolean("qk_layernorm", false);
  c.tied = fields.boolean("tie_word_embeddings", false);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  check_divides(fields, "num_key_value_heads", c.kv_heads, "num_attention_heads", c.heads);
  c.head_dim = c.hidden / c.heads;
  c.rotary = read_partial_rotary(fields, c.head_dim, c.max_positions, 0.5);
  return finish(fields, std::move(c));
}

Expected<PhiConfig> read_older_config(const JsonObject& config) {
  Fields fields(config);
  PhiConfig c;
  c.vocab = fields.integer("vocab_size", 50304, kMaxVocab);
  c.max_positions = fields.integer("n_positions", 2048, kMaxPositions);
  c.hidden = fields.integer("n_embd", 1024, kMaxWidth);
  c.layers = fields.integer("n_layer", 20, kMaxLayers);
  c.intermediate = fields.optional_integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.heads = fields.integer("n_head", 16, kMaxWidth);
  c.kv_heads = fields.optional_integer("n_head_kv", c.heads, kMaxWidth);
  c.rotary.dim = fields.optional_integer("rotary_dim", 32, kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0);
  c.embedding_dropout = fields.probability("embd_pdrop", 0);
  c.attention_dropout = fields.probability("attn_pdrop", 0);
  c.tied = fields.boolean("tie_word_embeddings", false);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  check_divides(fields, "n_head_kv", c.kv_heads, "n_head", c.heads);
  c.head_dim = c.hidden / c.heads;
  if (c.rotary.dim > c.head_dim || c.rotary.dim % 2 != 0) {
    fields.reject("rotary_dim",
                  fmt::format("{} of a head's {} dimensions cannot be turned in pairs", c.rotary.dim, c.head_dim));
  }
  return finish(fields, std::move(c));
}

AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto project = [&](const Linear& linear, std::int64_t heads) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = tensor::view(std::move(x), {batch, seq, heads, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q, a.heads);
  Tensor key = project(a.k, a.kv_heads);
  Tensor value = project(a.v, a.kv_heads);
  if (a.q_norm.weight) {
    query = call([&](Tensor x) { return m.norm(a.q_norm, x); }, query);
    key = call([&](Tensor x) { return m.norm(a.k_norm, x); }, key);
  }
  const std::int64_t dims = rotary.cos.size(-1);
  TurnedAndPassed q = split_rotated(query, dims);
  TurnedAndPassed k = split_rotated(key, dims);
  m.apply_rotary(q.turned, k.turned, rotary);
  query = tensor::cat({q.turned, q.passed}, -1);
  key = tensor::cat({k.turned, k.passed}, -1);
  m.extend_past(key, value);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return attention(m, layer.attention, std::move(x), rotary, mask); }, hidden);
  Tensor attention_output = std::move(attended.output);
  attention_output = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, attention_output);
  Tensor wide = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  wide = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, std::move(wide));
  Tensor sum = tensor::add(attention_output, wide);
  hidden = tensor::add(std::move(sum), residual);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask({}, embeds);
  embeds = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeds);
  Tensor hidden = embeds;
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

LayerKind layer_kind(const PhiConfig& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.head_dim);
  const Dimension kv_heads = axis(Axis::kv_heads, c.kv_heads, c.head_dim);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.kv_heads;
  kind.attention.head_dim = c.head_dim;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.q = p.linear("self_attn.q_proj", hidden, heads, true);
  kind.attention.k = p.linear("self_attn.k_proj", hidden, kv_heads, true);
  kind.attention.v = p.linear("self_attn.v_proj", hidden, kv_heads, true);
  kind.attention.o = p.linear("self_attn.dense", heads, hidden, true);
  if (c.head_norms) {
    kind.attention.q_norm = p.layer_norm("self_attn.q_layernorm", axis(Axis::hidden, c.head_dim));
    kind.attention.k_norm = p.layer_norm("self_attn.k_layernorm", axis(Axis::hidden, c.head_dim));
  }
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.fc1", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.fc2", ffn, hidden, true);
  kind.input_norm = p.layer_norm("input_layernorm", hidden);
  kind.residual_dropout = c.residual_dropout;
  kind.parallel = true;
  return kind;
}

Architecture network(const PhiConfig& c) {
  Architecture arch;
  arch.family = "phi";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "model.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.embed_tokens", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("model.final_layernorm", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, true);
  if (c.tied) tie_head(arch);
  arch.embedding_dropout = c.embedding_dropout;
  arch.rotary = c.rotary;
  arch.buffers = rotary_buffers(c.rotary);
  return arch;
}

}  // namespace

Expected<Architecture> build_phi(const JsonObject& config) { return read_config(config).map(network); }

Expected<Architecture> build_phi_msft(const JsonObject& config) { return read_older_config(config).map(network); }

Output forward_phi(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
