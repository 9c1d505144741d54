// BLOOM (transformers: models/bloom/modeling_bloom.py).
#include "model/families/bloom.h"

#include "model/families/alibi.h"
#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

using tensor::Op;
using tensor::RegionOutput;

struct BloomConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  bool residual_after_norm = false;
  bool tied = true;
};

Expected<BloomConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  BloomConfig c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 250880, kMaxVocab);
  const std::int64_t hidden = fields.integer("hidden_size", 64, kMaxWidth);
  c.hidden = fields.optional_integer("n_embed", hidden, kMaxWidth);  // the older name wins
  c.layers = either("n_layer", "num_hidden_layers", 2, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 8, kMaxWidth);
  c.hidden_dropout = fields.probability("hidden_dropout", 0);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.residual_after_norm = fields.boolean("apply_residual_connection_post_layernorm", false);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_head", c.heads, "hidden_size", c.hidden);
  const std::int64_t parts = fields.integer("pretraining_tp", 1, kMaxWidth);
  if (fields.boolean("slow_but_exact", false) && parts > 1) {
    fields.reject("slow_but_exact", "products in slices (with pretraining_tp) are not modelled; set it to false");
  }
  return finish(fields, std::move(c));
}

// Query, key or value of the fused projection seen as [batch, seq, heads, 3, dim], one head after the other.
Tensor part_of(const Tensor& fused, std::int64_t index) {
  return tensor::transpose(tensor::select(fused, 3, index), 1, 2);
}

Tensor dropout_add(Modules& m, double p, const Tensor& x, const Tensor& residual) {
  const Tensor dropped = m.dropout(p, x);
  return tensor::add(residual, dropped);
}

// [batch * heads, seq, dim] to [batch, seq, heads * dim]
Tensor merge_heads(Tensor x_in, const Attention& a) {
  Tensor x = std::move(x_in);
  const std::int64_t seq = x.size(1);
  const std::int64_t batch = x.size(0) / a.heads;
  x = tensor::view(std::move(x), {batch, a.heads, seq, a.head_dim});
  x = tensor::transpose(std::move(x), 1, 2);
  return tensor::reshape(std::move(x), {batch, seq, a.heads * a.head_dim});
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& residual,
                          const Tensor& alibi, const Tensor& mask) {
  const Attention& a = layer.attention;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const std::int64_t rows = batch * a.heads;
  const Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  const Tensor parted = tensor::view(fused, {batch, seq, a.heads, 3, a.head_dim});
  Tensor query = part_of(parted, 0);
  Tensor key = part_of(parted, 1);
  Tensor value = part_of(parted, 2);
  m.extend_past(key, value);
  query = tensor::reshape(query, {rows, -1, a.head_dim});
  key = tensor::reshape(key, {rows, -1, a.head_dim});
  key = tensor::transpose(key, -1, -2);
  value = tensor::reshape(value, {rows, -1, a.head_dim});
  const Tensor scores = tensor::baddbmm(alibi, query, key);
  Tensor weights = tensor::view(scores, {batch, a.heads, seq, -1});
  weights = tensor::add(weights, mask);
  Tensor probabilities = tensor::softmax(weights, DType::f32);
  probabilities = tensor::to(std::move(probabilities), query.dtype());
  probabilities = call([&](Tensor x) { return m.dropout(a.dropout, x); }, probabilities);
  const Tensor flat = tensor::view(probabilities, {rows, seq, -1});
  Tensor context = tensor::matmul(flat, value);
  context = merge_heads(context, a);
  Tensor out = call([&](Tensor x) { return m.linear(a.o, x); }, context);
  out = dropout_add(m, layer.residual_dropout, out, residual);
  return {std::move(out), std::move(probabilities)};
}

Tensor mlp(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& residual) {
  {
    Tensor wide = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
    hidden = call([](Tensor x) { return tensor::gelu_by_hand(x); }, std::move(wide));
  }
  const Tensor out = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  return dropout_add(m, layer.residual_dropout, out, residual);
}

RegionOutput block(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& alibi, const Tensor& mask) {
  Tensor normed = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  Tensor residual = layer.residual_after_norm ? normed : hidden;
  AttentionOutput attended =
      call([&](Tensor x, Tensor beside) { return attention(m, layer, std::move(x), beside, alibi, mask); }, normed,
           residual);
  normed = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, attended.output);
  residual = layer.residual_after_norm ? normed : attended.output;
  Tensor out = call([&](Tensor x, Tensor beside) { return mlp(m, layer, std::move(x), beside); }, normed, residual);
  return {std::move(out), std::move(attended.weights)};
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  Tensor hidden = call([&](Tensor x) { return m.norm(arch.embedding_norm, x); }, embeds);
  const Attention& a = arch.kinds[0].attention;
  Tensor tokens = m.counted_tokens();
  if (!tokens) tokens = tensor::empty(m.context(), Op::ones_like, {embeds.size(0), embeds.size(1)}, DType::f32);
  Tensor alibi = alibi_of_tokens(tokens, a.heads, DType::f32, hidden.dtype());
  alibi = tensor::view(std::move(alibi), {-1, 1, tokens.size(1)});
  const Tensor mask = m.causal_mask({}, embeds, {tokens, false, false, true});
  Tensor weights;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, alibi, mask](Tensor x, Tensor) { return block(m, kind, std::move(x), alibi, mask); }, hidden, {},
        &weights);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind block_kind(const BloomConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const std::int64_t head_dim = c.hidden / c.heads;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, head_dim);
  const Dimension ffn = axis(Axis::ffn, 4 * c.hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = head_dim;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.eager_only = true;
  kind.attention.fused_heads = FusedHeads::by_head;
  kind.input_norm = p.layer_norm("input_layernorm", hidden);
  // Query, key and value of one head lie together.
  kind.attention.qkv =
      p.linear("self_attention.query_key_value", hidden, axis(Axis::heads, c.heads, 3 * head_dim), true);
  kind.attention.o = p.linear("self_attention.dense", heads, hidden, true);
  kind.post_attention_norm = p.layer_norm("post_attention_layernorm", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = Activation::gelu_tanh;
  kind.mlp.up = p.linear("mlp.dense_h_to_4h", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.dense_4h_to_h", ffn, hidden, true);
  kind.residual_dropout = c.hidden_dropout;
  kind.residual_after_norm = c.residual_after_norm;
  return kind;
}

Architecture network(const BloomConfig& c) {
  Architecture arch;
  arch.family = "bloom";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.layer_prefix = "transformer.h.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.word_embeddings", vocab, hidden);
  arch.embedding_norm = p.layer_norm("transformer.word_embeddings_layernorm", hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("transformer.ln_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  return arch;
}

}  // namespace

Expected<Architecture> build_bloom(const JsonObject& config) { return read_config(config).map(network); }

Output forward_bloom(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
