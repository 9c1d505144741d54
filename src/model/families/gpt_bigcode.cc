// GPT-BigCode: SantaCoder and StarCoder (transformers: models/gpt_bigcode/modeling_gpt_bigcode.py).
#include "model/families/gpt_bigcode.h"

#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

struct GptBigCodeConfig {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  Activation activation = Activation::gelu_tanh;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool multi_query = true;
  bool tied = true;
};

Expected<GptBigCodeConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  GptBigCodeConfig c;
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
  c.activation = fields.activation("activation_function", "gelu_pytorch_tanh");
  c.residual_dropout = fields.probability("resid_pdrop", 0.1);
  c.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  c.attention_dropout = fields.probability("attn_pdrop", 0.1);
  c.multi_query = fields.boolean("multi_query", true);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  if (fields.boolean("add_cross_attention", false)) {
    fields.reject("add_cross_attention", "cross attention in GPT-BigCode is not modelled; set it to false");
  }
  return finish(fields, std::move(c));
}

// [batch, heads, seq, dim] each.
struct Heads {
  Tensor query, key, value;
};

// One key and value head behind all query heads, or the three of each head together.
Heads split_heads(const Attention& a, Tensor fused) {
  const std::int64_t batch = fused.size(0);
  const std::int64_t seq = fused.size(1);
  Heads out;
  if (a.fused_heads == FusedHeads::by_head) {
    fused = tensor::view(std::move(fused), {batch, seq, a.heads, 3 * a.head_dim});
    fused = tensor::transpose(std::move(fused), 1, 2);
    std::vector<Tensor> parts = tensor::split(std::move(fused), a.head_dim, 3);
    out.query = std::move(parts[0]);
    out.key = std::move(parts[1]);
    out.value = std::move(parts[2]);
    return out;
  }
  fused = tensor::unsqueeze(std::move(fused), 1);
  std::vector<Tensor> parts = tensor::split(std::move(fused), {a.heads * a.head_dim, a.head_dim, a.head_dim}, 3);
  out.query = tensor::view(std::move(parts[0]), {batch, seq, a.heads, a.head_dim});
  out.query = tensor::transpose(std::move(out.query), 1, 2);
  out.key = std::move(parts[1]);
  out.value = std::move(parts[2]);
  return out;
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask) {
  const Attention& a = layer.attention;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  Heads h = split_heads(a, std::move(fused));
  m.extend_past(h.key, h.value);
  AttentionOutput attended = m.attention(a, h.query, h.key, h.value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  out = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor feed_forward(Modules& m, const LayerKind& layer, const Tensor& hidden) {
  const Tensor out = m.mlp(layer.mlp, hidden);
  return call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
}

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  const AttentionOutput attended = call([&](Tensor x) { return attention(m, layer, std::move(x), mask); }, hidden);
  hidden = tensor::add(attended.output, residual);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  const Tensor wide = call([&](Tensor x) { return feed_forward(m, layer, x); }, hidden);
  hidden = tensor::add(residual, wide);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask({}, embeds);
  const Tensor position_embeds = call([&](Tensor x) { return m.embedding(arch.positions, x); }, positions);
  Tensor hidden = tensor::add(embeds, position_embeds);
  hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, hidden);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, mask](Tensor x, Tensor) { return block(m, kind, std::move(x), mask); }, hidden);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind block_kind(const GptBigCodeConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const std::int64_t head_dim = c.hidden / c.heads;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, head_dim);
  const Dimension ffn = axis(Axis::ffn, c.inner);
  const Dimension one{{heads.parts[0], {Axis::kv_heads, 1, head_dim}, {Axis::kv_heads, 1, head_dim}}};
  kind.input_norm = p.layer_norm("ln_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.multi_query ? 1 : c.heads;
  kind.attention.head_dim = head_dim;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.fused_heads = c.multi_query ? FusedHeads::in_sequence : FusedHeads::by_head;
  kind.attention.qkv =
      p.linear("attn.c_attn", hidden, c.multi_query ? one : axis(Axis::heads, c.heads, 3 * head_dim), true);
  kind.attention.o = p.linear("attn.c_proj", heads, hidden, true);
  kind.post_attention_norm = p.layer_norm("ln_2", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.c_fc", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.c_proj", ffn, hidden, true);
  kind.residual_dropout = c.residual_dropout;
  return kind;
}

Architecture network(const GptBigCodeConfig& c) {
  Architecture arch;
  arch.family = "gpt_bigcode";
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
  arch.buffers.push_back({"transformer.bias", {c.positions, c.positions}, DType::boolean, false, false});
  return arch;
}

}  // namespace

Expected<Architecture> build_gpt_bigcode(const JsonObject& config) { return read_config(config).map(network); }

Output forward_gpt_bigcode(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
