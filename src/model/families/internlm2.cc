// InternLM2 (modeling_internlm2.py as published with its weights; its eager attention, which is the default).
#include "model/families/internlm2.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"
#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

using tensor::Op;

struct InternLm2Config {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t max_positions = 0;
  Activation activation = Activation::silu;
  bool bias = true;
  bool tied = false;
};

Expected<InternLm2Config> read_config(const JsonObject& config) {
  Fields fields(config);
  InternLm2Config c;
  c.vocab = fields.integer("vocab_size", 103168, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 11008, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.kv_heads = fields.optional_integer("num_key_value_heads", c.heads, kMaxWidth);
  c.bias = fields.boolean("bias", true);
  c.activation = fields.activation("hidden_act", "silu");
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.tied = fields.boolean("tie_word_embeddings", false);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  check_divides(fields, "num_key_value_heads", c.kv_heads, "num_attention_heads", c.heads);
  if (c.hidden / c.heads % 2 != 0) {
    fields.reject("num_attention_heads",
                  fmt::format("heads of {} are odd; the rotary embedding turns pairs", c.hidden / c.heads));
  }
  return finish(fields, std::move(c));
}

Tensor repeat_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  Tensor wide = tensor::unsqueeze(x, 2);
  wide = tensor::expand(std::move(wide), {x.size(0), x.size(1), times, x.size(2), x.size(3)});
  return tensor::reshape(std::move(wide), {x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

void apply_rotary(Tensor& query, Tensor& key, const RotaryTables& tables) {
  const auto turn = [&](const Tensor& x) {
    Tensor straight = tensor::mul(x, tables.cos);
    Tensor turned = rotate_half(x);
    turned = tensor::mul(std::move(turned), tables.sin);
    return tensor::add(std::move(straight), std::move(turned));
  };
  Tensor turned_query = turn(query);
  Tensor turned_key = turn(key);
  query = std::move(turned_query);
  key = std::move(turned_key);
}

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, Tensor& weights) {
  {
    Tensor turned = tensor::transpose(key, 2, 3);
    Tensor product = tensor::matmul(query, std::move(turned));
    weights = tensor::div_scalar(std::move(product));
  }
  weights = tensor::add(weights, mask);
  {
    Tensor probabilities = tensor::softmax(weights, DType::f32);
    weights = tensor::to(std::move(probabilities), query.dtype());
  }
  Tensor out = tensor::matmul(weights, value);
  out = tensor::transpose(std::move(out), 1, 2);
  return tensor::contiguous(std::move(out));
}

// The tables' first rows, copied where they are stored in another type than the values have.
RotaryTables stored_rows(Modules& m, const Attention& a, std::int64_t seq, DType dtype) {
  const Tensor weight = m.weight(a.qkv.weight);
  if (weight.dtype() == dtype) return {};
  const tensor::NoGrad no_grad(m.context());
  RotaryTables out;
  out.cos = tensor::empty(m.context(), Op::cast, {seq, a.head_dim}, dtype);
  out.sin = tensor::empty(m.context(), Op::cast, {seq, a.head_dim}, dtype);
  return out;
}

// Each key and value head lies behind its queries.
Tensor attention(Modules& m, const Attention& a, Tensor hidden, const Tensor& mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const std::int64_t queries = a.heads / a.kv_heads;
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  fused = tensor::view(std::move(fused), {batch, seq, a.kv_heads, queries + 2, a.head_dim});
  Tensor query = tensor::slice(fused, 3, 0, queries);
  query = tensor::reshape(std::move(query), {batch, seq, a.heads, a.head_dim});
  Tensor key = tensor::select(fused, 3, queries);
  Tensor value = tensor::select(fused, 3, queries + 1);
  query = tensor::transpose(std::move(query), 1, 2);
  key = tensor::transpose(std::move(key), 1, 2);
  value = tensor::transpose(std::move(value), 1, 2);
  const RotaryTables rows = stored_rows(m, a, seq, value.dtype());
  {
    const RotaryTables tables = look_up_rotary(m.context(), seq, a.head_dim, value.dtype());
    apply_rotary(query, key, tables);
  }
  key = repeat_heads(key, queries);
  value = repeat_heads(value, queries);
  Tensor weights;  // named until the projection is done
  Tensor out = attend(query, key, value, mask, weights);
  out = tensor::view(std::move(out), {batch, seq, a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return out;
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return attention(m, layer.attention, std::move(x), mask); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const std::int64_t batch = ids.size(0);
  const std::int64_t seq = ids.size(1);
  const Tensor positions = tensor::empty(m.context(), Op::arange, {1, seq}, DType::i64);
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor mask = whole_causal_mask(m.context(), batch, seq, embeds.dtype());
  Tensor hidden = embeds;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i,
        [&m, &kind, positions](Tensor x, Tensor extra) {
          return decoder_layer(m, kind, std::move(x), std::move(extra));
        },
        hidden, mask);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind layer_kind(const InternLm2Config& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const std::int64_t head_dim = c.hidden / c.heads;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, head_dim);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.kv_heads;
  kind.attention.head_dim = head_dim;
  kind.attention.eager_only = true;
  kind.attention.fused_heads = FusedHeads::by_group;
  kind.attention.qkv = p.linear("attention.wqkv", hidden,
                                axis(Axis::kv_heads, c.kv_heads, (c.heads / c.kv_heads + 2) * head_dim), c.bias);
  kind.attention.o = p.linear("attention.wo", heads, hidden, c.bias);
  // Tables of its own in each layer.
  kind.buffers.push_back({"attention.rotary_emb.inv_freq", {head_dim / 2}, DType::f32, false, false});
  kind.buffers.push_back({"attention.rotary_emb.cos_cached", {c.max_positions, head_dim}, DType::f32, true, false});
  kind.buffers.push_back({"attention.rotary_emb.sin_cached", {c.max_positions, head_dim}, DType::f32, true, false});
  kind.mlp.activation = c.activation;
  kind.mlp.gate = p.linear("feed_forward.w1", hidden, ffn, false);
  kind.mlp.up = p.linear("feed_forward.w3", hidden, ffn, false);
  kind.mlp.down = p.linear("feed_forward.w2", ffn, hidden, false);
  kind.input_norm = p.rms_norm("attention_norm", hidden);
  kind.post_attention_norm = p.rms_norm("ffn_norm", hidden);
  return kind;
}

Architecture network(const InternLm2Config& c) {
  Architecture arch;
  arch.family = "internlm2";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "model.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.tok_embeddings", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.rms_norm("model.norm", hidden);
  arch.head = p.linear("output", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  return arch;
}

}  // namespace

Expected<Architecture> build_internlm2(const JsonObject& config) { return read_config(config).map(network); }

// What is returned are the logits in fp32.
Output forward_internlm2(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, hidden);
  out.logits = tensor::to(out.logits, DType::f32);
  if (batch.labels) out.loss = shifted_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
