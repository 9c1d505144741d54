// OPT (transformers: models/opt/modeling_opt.py).
#include "model/families/opt.h"

#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

using tensor::Op;

// Rows of the table of positions that no position uses.
constexpr std::int64_t kPositionOffset = 2;

struct OptConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t positions = 0;
  std::int64_t embedding_width = 0;
  Activation activation = Activation::relu;
  double dropout = 0;
  double attention_dropout = 0;
  bool norm_before = true;
  bool final_norm = true;
  bool bias = true;
  bool affine = true;
  bool tied = true;
};

Expected<OptConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  OptConfig c;
  c.vocab = fields.integer("vocab_size", 50272, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 12, kMaxLayers);
  c.ffn = fields.integer("ffn_dim", 3072, kMaxWidth);
  c.positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.norm_before = fields.boolean("do_layer_norm_before", true);
  c.final_norm = c.norm_before && !fields.boolean("_remove_final_layer_norm", false);
  c.embedding_width = fields.optional_integer("word_embed_proj_dim", c.hidden, kMaxWidth);
  c.dropout = fields.probability("dropout", 0.1);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.heads = fields.integer("num_attention_heads", 12, kMaxWidth);
  c.activation = fields.activation("activation_function", "relu");
  c.bias = fields.boolean("enable_bias", true);
  c.affine = fields.boolean("layer_norm_elementwise_affine", true);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  return finish(fields, std::move(c));
}

Tensor heads_first(Tensor x_in, const Attention& a) {
  Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  x = tensor::view(std::move(x), {batch, seq, a.heads, a.head_dim});
  return tensor::transpose(std::move(x), 1, 2);
}

// Queries are scaled here; attention itself scales by one.
AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, Tensor mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor query = call([&](Tensor x) { return m.linear(a.q, x); }, hidden);
  query = tensor::mul_scalar(std::move(query));
  query = heads_first(std::move(query), a);
  Tensor key = call([&](Tensor x) { return m.linear(a.k, x); }, hidden);
  Tensor value = call([&](Tensor x) { return m.linear(a.v, x); }, hidden);
  key = heads_first(std::move(key), a);
  value = heads_first(std::move(value), a);
  m.extend_past(key, value);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

// The feed-forward part works on rows of tokens.
Tensor feed_forward(Modules& m, const LayerKind& layer, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  const tensor::Dims sizes = hidden.sizes();
  hidden = tensor::reshape(std::move(hidden), {-1, sizes[-1]});
  const Tensor residual = hidden;
  if (!layer.norm_after) hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
  hidden = call([&](Tensor x) { return m.activation(layer.mlp.activation, x); }, hidden);
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  hidden = m.dropout(layer.residual_dropout, hidden);
  Tensor sum = tensor::add(residual, hidden);
  hidden = tensor::view(std::move(sum), sizes);
  if (layer.norm_after) hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  return hidden;
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask) {
  Tensor residual = hidden;
  if (!layer.norm_after) hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = m.dropout(layer.residual_dropout, hidden);
  hidden = tensor::add(residual, hidden);
  if (layer.norm_after) hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  residual.reset();
  return feed_forward(m, layer, std::move(hidden));
}

// Without a mask every token counts; positions are counted from it unless the caller gives both.
struct Tokens {
  Tensor mask;
  Tensor positions;
};

Tokens count_tokens(Modules& m, const Tensor& embeds) {
  tensor::Context& context = embeds.context();
  const tensor::Dims sizes{embeds.size(0), embeds.size(1)};
  Tokens out;
  out.mask = m.counted_tokens();
  if (out.mask) {
    out.positions = m.position_ids(embeds);
    return out;
  }
  out.mask = tensor::empty(context, Op::ones_like, sizes, DType::f32);
  const Tensor counts = tensor::empty(context, Op::sum, sizes, DType::f32);
  Tensor positions = tensor::mul(counts, out.mask);
  positions = tensor::add_scalar(std::move(positions));
  out.positions = tensor::to(std::move(positions), DType::i64);
  return out;
}

Tensor embed_positions(Modules& m, const Architecture& arch, const Tensor& positions) {
  const Tensor shifted = tensor::add_scalar(positions);
  return m.embedding(arch.positions, shifted);
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tokens tokens = count_tokens(m, embeds);
  const Tensor positions = tokens.positions;
  const Tensor mask = m.causal_mask({}, embeds, {tokens.mask, false});
  const Tensor position_embeds = call([&](Tensor x) { return embed_positions(m, arch, x); }, positions);
  if (arch.project_in.weight) embeds = call([&](Tensor x) { return m.linear(arch.project_in, x); }, embeds);
  Tensor hidden = tensor::add(embeds, position_embeds);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, mask, positions](Tensor x, Tensor) { return decoder_layer(m, kind, std::move(x), mask); },
        hidden);
  }
  if (arch.has_final_norm) hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  if (arch.project_out.weight) hidden = call([&](Tensor x) { return m.linear(arch.project_out, x); }, hidden);
  return hidden;
}

Norm norm(ParameterList& p, const OptConfig& c, const std::string& name, const Dimension& size) {
  if (c.affine) return p.layer_norm(name, size);
  return {NormKind::layer, {}, {}};
}

LayerKind layer_kind(const OptConfig& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.ffn);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.groups_keys = false;
  kind.attention.k = p.linear("self_attn.k_proj", hidden, heads, c.bias);
  kind.attention.v = p.linear("self_attn.v_proj", hidden, heads, c.bias);
  kind.attention.q = p.linear("self_attn.q_proj", hidden, heads, c.bias);
  kind.attention.o = p.linear("self_attn.out_proj", heads, hidden, c.bias);
  kind.input_norm = norm(p, c, "self_attn_layer_norm", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("fc1", hidden, ffn, c.bias);
  kind.mlp.down = p.linear("fc2", ffn, hidden, c.bias);
  kind.post_attention_norm = norm(p, c, "final_layer_norm", hidden);
  kind.residual_dropout = c.dropout;
  kind.norm_after = !c.norm_before;
  return kind;
}

Architecture network(const OptConfig& c) {
  Architecture arch;
  arch.family = "opt";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.layer_prefix = "model.decoder.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension width = axis(Axis::hidden, c.embedding_width);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.decoder.embed_tokens", vocab, width);
  arch.positions =
      p.embedding("model.decoder.embed_positions", axis(Axis::position, c.positions + kPositionOffset), hidden);
  if (c.embedding_width != c.hidden) {
    arch.project_out = p.linear("model.decoder.project_out", hidden, width, false);
    arch.project_in = p.linear("model.decoder.project_in", width, hidden, false);
  }
  arch.has_final_norm = c.final_norm;
  if (c.final_norm) arch.final_norm = norm(p, c, "model.decoder.final_layer_norm", hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.head = p.linear("lm_head", width, vocab, false);
  if (c.tied) tie_head(arch);
  return arch;
}

}  // namespace

Expected<Architecture> build_opt(const JsonObject& config) { return read_config(config).map(network); }

Output forward_opt(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
