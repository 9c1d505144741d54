// GPT-2 (transformers: models/gpt2/modeling_gpt2.py).
#include "model/families/gpt2.h"

#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

Tensor heads_first(Tensor x_in, std::int64_t head_dim) {
  Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  x = tensor::view(std::move(x), {batch, seq, -1, head_dim});
  return tensor::transpose(std::move(x), 1, 2);
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask) {
  const Attention& a = layer.attention;
  const std::int64_t width = a.heads * a.head_dim;
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  std::vector<Tensor> parts = tensor::split(std::move(fused), width, 2);
  Tensor query = std::move(parts[0]);
  Tensor key = std::move(parts[1]);
  Tensor value = std::move(parts[2]);
  key = heads_first(std::move(key), a.head_dim);
  value = heads_first(std::move(value), a.head_dim);
  query = heads_first(std::move(query), a.head_dim);
  m.extend_past(key, value);
  const std::int64_t batch = query.size(0);
  const std::int64_t seq = query.size(2);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, width});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  out = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor mlp(Modules& m, const LayerKind& layer, Tensor hidden) {
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
  hidden = call([&](Tensor x) { return m.activation(layer.mlp.activation, x); }, hidden);
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  hidden = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, hidden);
  return hidden;
}

// The outputs of attention and feed-forward keep their names, and so their memory, until the block returns.
Tensor block(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  const AttentionOutput attended = call([&](Tensor x) { return attention(m, layer, x, mask); }, hidden);
  hidden = tensor::add(attended.output, residual);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  const Tensor feed_forward = call([&](Tensor x) { return mlp(m, layer, x); }, hidden);
  hidden = tensor::add(residual, feed_forward);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor position_embeds = call([&](Tensor x) { return m.embedding(arch.positions, x); }, positions);
  Tensor hidden = tensor::add(embeds, position_embeds);
  const Tensor mask = m.causal_mask({}, embeds);
  hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, hidden);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, positions](Tensor x, Tensor extra) { return block(m, kind, std::move(x), std::move(extra)); },
        hidden, mask);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind block_kind(const Gpt2Config& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.inner);
  const Dimension fused{{heads.parts[0], heads.parts[0], heads.parts[0]}};
  kind.input_norm = p.layer_norm("ln_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.softmax_in_fp32 = false;
  kind.attention.groups_keys = false;
  kind.attention.upcast = c.upcast;
  kind.attention.qkv = p.conv1d("attn.c_attn", hidden, fused);
  kind.attention.o = p.conv1d("attn.c_proj", heads, hidden);
  kind.post_attention_norm = p.layer_norm("ln_2", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.conv1d("mlp.c_fc", hidden, ffn);
  kind.mlp.down = p.conv1d("mlp.c_proj", ffn, hidden);
  kind.residual_dropout = c.residual_dropout;
  return kind;
}

Architecture network(const Gpt2Config& c) {
  Architecture arch;
  arch.family = "gpt2";
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
  if (c.tied) arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
  arch.embedding_dropout = c.embedding_dropout;
  return arch;
}

}  // namespace

Expected<Gpt2Config> read_gpt2_config(const JsonObject& config) {
  Fields fields(config);
  Gpt2Config c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50257, kMaxVocab);
  c.positions = either("n_positions", "max_position_embeddings", 1024, kMaxPositions);
  c.hidden = either("n_embd", "hidden_size", 768, kMaxWidth);
  c.layers = either("n_layer", "num_hidden_layers", 12, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 12, kMaxWidth);
  c.inner = fields.optional_integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0.1);
  c.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  c.attention_dropout = fields.probability("attn_pdrop", 0.1);
  c.upcast = fields.boolean("reorder_and_upcast_attn", false);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  if (fields.boolean("add_cross_attention", false)) {
    fields.reject("add_cross_attention", "cross attention in GPT-2 is not modelled; set it to false");
  }
  return finish(fields, std::move(c));
}

Expected<Architecture> build_gpt2(const JsonObject& config) { return read_gpt2_config(config).map(network); }

Output forward_gpt2(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, kept_tokens(hidden, batch));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
