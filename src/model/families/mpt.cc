// MPT (transformers: models/mpt/modeling_mpt.py).
#include "model/families/mpt.h"

#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

using tensor::Op;
using tensor::RegionOutput;

struct MptConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t positions = 0;
  double dropout = 0;
  bool clipped = false;
  bool tied = true;
};

// attn_config. Of the kinds of attention that MPT's own code has, transformers' knows one.
void read_attention(Fields& fields, MptConfig& c) {
  const Json* nested = fields.config().find("attn_config");
  if (nested == nullptr) return;
  const JsonObject form(*nested, fields.config().where("attn_config"));
  if (!nested->is_object()) {
    fields.reject("attn_config", "is no object; expected one such as {\"attn_pdrop\": 0}");
    return;
  }
  const auto dropout = form.number("attn_pdrop", 0);
  const auto clip = form.number("clip_qkv", 0);
  const auto type = form.string("attn_type", "multihead_attention");
  if (!dropout) fields.reject(dropout.error());
  if (!clip) fields.reject(clip.error());
  if (!type) fields.reject(type.error());
  c.dropout = dropout.value_or(0);
  c.clipped = clip.value_or(0) != 0;
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    fields.reject(Error{ErrorCode::malformed, "is no dropout probability; expected 0 or more and less than 1",
                        form.where("attn_pdrop")});
  }
  if (type.value_or("") != "multihead_attention") {
    fields.reject(Error{ErrorCode::unsupported, "only 'multihead_attention' is modelled, as transformers builds it",
                        form.where("attn_type")});
  }
}

Expected<MptConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  MptConfig c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.hidden = either("d_model", "hidden_size", 2048, kMaxWidth);
  c.heads = either("n_heads", "num_attention_heads", 16, kMaxWidth);
  c.layers = either("n_layers", "num_hidden_layers", 24, kMaxLayers);
  c.positions = fields.integer("max_seq_len", 2048, kMaxPositions);
  c.vocab = fields.integer("vocab_size", 50368, kMaxVocab);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_heads", c.heads, "d_model", c.hidden);
  read_attention(fields, c);
  return finish(fields, std::move(c));
}

// Slopes of the heads as powers of two, of as many heads as the next power of two has, of which the first are taken in
// another order where there are fewer. Gives back what stays bound with the slopes.
struct Slopes {
  Tensor base;
  Tensor slopes;
};

Slopes slopes_of(tensor::Context& context, std::int64_t heads) {
  std::int64_t power = 1;
  while (power < heads) power *= 2;
  Slopes out;
  {
    const Tensor numbers = tensor::empty(context, Op::arange, {power}, DType::i64);
    out.base = tensor::to(numbers, DType::f32);
  }
  out.base = tensor::mul_scalar(out.base);
  {
    const Tensor powers = tensor::empty(context, Op::pow, {power}, DType::f32);
    const Tensor inverse = tensor::empty(context, Op::div, {power}, DType::f32);
    out.slopes = tensor::mul_scalar(inverse);
  }
  if (power != heads) out.slopes = tensor::empty(context, Op::cat, {power}, DType::f32);
  return out;
}

// [heads, 1, positions], for as many positions as the model has.
Tensor alibi_of_positions(tensor::Context& context, std::int64_t heads, std::int64_t positions) {
  const tensor::NoGrad no_grad(context);
  const Tensor distances = tensor::empty(context, Op::arange, {positions}, DType::i32);
  const Slopes slopes = slopes_of(context, heads);
  return tensor::empty(context, Op::mul, {heads, 1, positions}, DType::f32);
}

AttentionOutput attend(Modules& m, const Attention& a, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& alibi, const Tensor& mask) {
  const tensor::Scope named(m.context(), m.context().intern("attention"));
  Tensor scores;
  {
    Tensor turned = tensor::transpose(key, -1, -2);
    Tensor product = tensor::matmul(query, std::move(turned));
    scores = tensor::mul_scalar(std::move(product));
  }
  const std::int64_t keys = key.size(2);
  const Tensor nearest = tensor::slice(alibi, 2, alibi.size(2) - keys, alibi.size(2));
  scores = tensor::add(scores, nearest);
  scores = tensor::masked_fill(scores, mask);
  Tensor weights;
  {
    Tensor converted = tensor::to(scores, DType::f32);
    weights = tensor::softmax(std::move(converted));
  }
  weights = tensor::to(std::move(weights), value.dtype());
  weights = m.dropout(a.dropout, weights);
  Tensor out = tensor::matmul(weights, value);
  out = tensor::transpose(std::move(out), 1, 2);
  out = tensor::contiguous(std::move(out));
  out = tensor::view(std::move(out), {query.size(0), query.size(2), a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(weights)};
}

AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const Tensor& alibi, const Tensor& mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto heads_first = [&](Tensor x) {
    x = tensor::reshape(std::move(x), {batch, seq, a.heads, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor mixed = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  if (a.clipped) mixed = tensor::clamp(mixed);
  std::vector<Tensor> parts = tensor::split(mixed, a.heads * a.head_dim, 2);
  const Tensor query = heads_first(std::move(parts[0]));
  Tensor key = heads_first(std::move(parts[1]));
  Tensor value = heads_first(std::move(parts[2]));
  m.extend_past(key, value);
  return attend(m, a, query, key, value, alibi, mask);
}

Tensor feed_forward(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& residual) {
  {
    Tensor wide = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
    hidden = call([&](Tensor x) { return m.activation(layer.mlp.activation, x); }, std::move(wide));
  }
  const Tensor out = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  const Tensor dropped = m.dropout(layer.residual_dropout, out);
  return tensor::add(dropped, residual);
}

RegionOutput block(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& alibi, const Tensor& mask) {
  Tensor normed = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  Tensor residual = hidden;
  AttentionOutput attended =
      call([&](Tensor x) { return attention(m, layer.attention, std::move(x), alibi, mask); }, normed);
  {
    const Tensor dropped = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, attended.output);
    hidden = tensor::add(dropped, residual);
  }
  normed = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  residual = hidden;
  Tensor out =
      call([&](Tensor x, Tensor beside) { return feed_forward(m, layer, std::move(x), beside); }, normed, residual);
  return {std::move(out), std::move(attended.weights)};
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Attention& a = arch.kinds[0].attention;
  const Tensor alibi = alibi_of_positions(m.context(), a.heads, arch.max_positions);
  Tensor mask = m.causal_mask({}, embeds, {{}, false, false, true});
  mask = tensor::to(std::move(mask), DType::boolean);
  Tensor hidden = embeds;
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

Norm norm_without_bias(ParameterList& p, const std::string& name, const Dimension& size) {
  return {NormKind::layer, p.add(name + ".weight", {size}), {}};
}

LayerKind block_kind(const MptConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, 4 * c.hidden);
  const Dimension fused{{heads.parts[0], heads.parts[0], heads.parts[0]}};
  kind.input_norm = norm_without_bias(p, "norm_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.dropout;
  kind.attention.eager_only = true;
  kind.attention.clipped = c.clipped;
  kind.attention.qkv = p.linear("attn.Wqkv", hidden, fused, false);
  kind.attention.o = p.linear("attn.out_proj", heads, hidden, false);
  kind.post_attention_norm = norm_without_bias(p, "norm_2", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = Activation::gelu;
  kind.mlp.up = p.linear("ffn.up_proj", hidden, ffn, false);
  kind.mlp.down = p.linear("ffn.down_proj", ffn, hidden, false);
  kind.residual_dropout = c.dropout;
  return kind;
}

Architecture network(const MptConfig& c) {
  Architecture arch;
  arch.family = "mpt";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.bounded_positions = true;
  arch.layer_prefix = "transformer.blocks.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.wte", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = norm_without_bias(p, "transformer.norm_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  arch.alibi = true;
  return arch;
}

}  // namespace

Expected<Architecture> build_mpt(const JsonObject& config) { return read_config(config).map(network); }

Output forward_mpt(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
