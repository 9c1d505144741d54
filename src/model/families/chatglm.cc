// ChatGLM2, ChatGLM3 and GLM-4 (modeling_chatglm.py as published with their weights).
#include "model/families/chatglm.h"

#include <fmt/core.h>

#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

using tensor::Op;

struct ChatGlmConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t positions = 0;
  double dropout = 0;
  bool bias = false;
  bool qkv_bias = false;
  bool residual_after_norm = false;
};

Expected<ChatGlmConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  ChatGlmConfig c;
  c.layers = fields.integer("num_layers", 28, kMaxLayers);
  c.vocab = fields.integer("padded_vocab_size", 65024, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.ffn = fields.integer("ffn_hidden_size", 13696, kMaxWidth);
  c.head_dim = fields.integer("kv_channels", 128, kMaxWidth);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.positions = fields.integer("seq_length", 2048, kMaxPositions);
  c.dropout = fields.probability("hidden_dropout", 0);
  c.residual_after_norm = fields.boolean("apply_residual_connection_post_layernorm", false);
  c.bias = fields.boolean("add_bias_linear", false);
  c.qkv_bias = fields.boolean("add_qkv_bias", false) || c.bias;
  c.kv_heads =
      fields.boolean("multi_query_attention", false) ? fields.integer("multi_query_group_num", 1, kMaxWidth) : c.heads;
  check_divides(fields, "multi_query_group_num", c.kv_heads, "num_attention_heads", c.heads);
  for (const auto& [key, needed] : {std::pair{"rmsnorm", true}, {"post_layer_norm", true}}) {
    if (fields.boolean(key, true) != needed) fields.reject(key, "false is not modelled; set it to true");
  }
  if (!fields.boolean("multi_query_attention", false)) {
    fields.reject("multi_query_attention", "false is not modelled; the published models have groups of heads");
  }
  if (fields.boolean("fp32_residual_connection", false)) {
    fields.reject("fp32_residual_connection", "true is not modelled; set it to false");
  }
  if (config.has("pre_seq_len")) fields.reject("pre_seq_len", "P-tuning is not modelled; leave it out");
  if (c.head_dim % 4 != 0) {
    fields.reject("kv_channels", fmt::format("pairs in half of {} dimensions cannot be turned", c.head_dim));
  }
  return finish(fields, std::move(c));
}

// cos and sin side by side for every position of the model, of which the first `seq` are used: [seq, 1, pairs, 2].
Tensor rotary_cache(tensor::Context& context, std::int64_t positions, std::int64_t seq, std::int64_t pairs,
                    DType dtype) {
  const tensor::NoGrad no_grad(context);
  Tensor numbers = tensor::empty(context, Op::arange, {pairs}, dtype);
  const Tensor frequencies = inverse_frequencies(std::move(numbers));
  const Tensor rows = tensor::empty(context, Op::arange, {positions}, dtype);
  Tensor angles;
  {
    const Tensor product = tensor::empty(context, Op::mul, {positions, pairs}, dtype);
    angles = tensor::to(product, DType::f32);
  }
  Tensor wide;
  {
    Tensor cos = tensor::cos(angles);
    Tensor sin = tensor::sin(angles);
    wide = tensor::stack_last({std::move(cos), std::move(sin)});
  }
  Tensor cache = tensor::to(wide, dtype);
  cache = tensor::slice(std::move(cache), 0, 0, seq);
  return tensor::view(std::move(cache), {seq, 1, 1, pairs, 2});
}

// Neighbouring pairs of the first half of each head turn. x [seq, batch, heads, dim].
Tensor turn(const Tensor& x, const Tensor& cache) {
  const std::int64_t pairs = cache.size(3);
  Tensor first = tensor::slice(x, -1, 0, 2 * pairs);
  const Tensor passed = tensor::slice(x, -1, 2 * pairs, x.size(-1));
  const Tensor shaped = tensor::reshape(first, {x.size(0), x.size(1), x.size(2), pairs, 2});
  const auto product = [&](std::int64_t of, std::int64_t with) {
    Tensor a = tensor::select(shaped, 4, of);
    Tensor b = tensor::select(cache, 4, with);
    return tensor::mul(std::move(a), std::move(b));
  };
  Tensor even;
  {
    Tensor left = product(0, 0);
    Tensor right = product(1, 1);
    even = tensor::sub(std::move(left), std::move(right));
  }
  Tensor odd;
  {
    Tensor left = product(1, 0);
    Tensor right = product(0, 1);
    odd = tensor::add(std::move(left), std::move(right));
  }
  Tensor turned = tensor::stack_last({std::move(even), std::move(odd)});
  turned = tensor::reshape(std::move(turned), {x.size(0), x.size(1), x.size(2), 2 * pairs});
  return tensor::cat({turned, passed}, -1);
}

Tensor repeat_heads(const Tensor& x, std::int64_t times) {
  Tensor wide = tensor::unsqueeze(x, 3);
  wide = tensor::expand(std::move(wide), {x.size(0), x.size(1), x.size(2), times, x.size(3)});
  wide = tensor::contiguous(std::move(wide));
  return tensor::view(std::move(wide), {x.size(0), x.size(1), x.size(2) * times, x.size(3)});
}

// [seq, batch, heads, dim] to [batch, heads, seq, dim]
Tensor batch_first(Tensor x_in) {
  Tensor x = tensor::transpose(std::move(x_in), 0, 1);
  return tensor::transpose(std::move(x), 1, 2);
}

Tensor attend(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in, std::int64_t width) {
  const Tensor query = batch_first(query_in);
  const Tensor key = batch_first(key_in);
  const Tensor value = batch_first(value_in);
  Tensor out = tensor::scaled_dot_product_attention(query, key, value, {}, 0, false);
  out = tensor::transpose(std::move(out), 1, 2);
  out = tensor::transpose(std::move(out), 0, 1);
  return tensor::reshape(std::move(out), {query_in.size(0), query_in.size(1), width});
}

Tensor attention(Modules& m, const Attention& a, Tensor hidden, const Tensor& cache) {
  const std::int64_t seq = hidden.size(0);
  const std::int64_t batch = hidden.size(1);
  const std::int64_t width = a.heads * a.head_dim;
  const std::int64_t kv_width = a.kv_heads * a.head_dim;
  const Tensor mixed = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  std::vector<Tensor> parts = tensor::split(mixed, {width, kv_width, kv_width}, -1);
  Tensor query = tensor::view(std::move(parts[0]), {seq, batch, a.heads, a.head_dim});
  Tensor key = tensor::view(std::move(parts[1]), {seq, batch, a.kv_heads, a.head_dim});
  Tensor value = tensor::view(std::move(parts[2]), {seq, batch, a.kv_heads, a.head_dim});
  query = turn(query, cache);
  key = turn(key, cache);
  key = repeat_heads(key, a.heads / a.kv_heads);
  value = repeat_heads(value, a.heads / a.kv_heads);
  const Tensor context = attend(query, key, value, width);
  return call([&](Tensor x) { return m.linear(a.o, x); }, context);
}

// Gate and up lie in one projection.
Tensor feed_forward(Modules& m, const Mlp& mlp, Tensor hidden) {
  Tensor wide = call([&](Tensor x) { return m.linear(mlp.up, x); }, hidden);
  {
    std::vector<Tensor> parts = tensor::split(wide, wide.size(-1) / 2, -1);
    Tensor gate = tensor::silu(parts[0]);
    wide = tensor::mul(std::move(gate), parts[1]);
  }
  return call([&](Tensor x) { return m.linear(mlp.down, x); }, wide);
}

Tensor norm(Modules& m, const Norm& module, const Tensor& x) { return rms_norm(m, module, NormCast::after_weight, x); }

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& cache) {
  Tensor normed = call([&](Tensor x) { return norm(m, layer.input_norm, x); }, hidden);
  const Tensor attended = call([&](Tensor x) { return attention(m, layer.attention, std::move(x), cache); }, normed);
  Tensor residual = layer.residual_after_norm ? normed : hidden;
  Tensor middle = m.dropout(layer.residual_dropout, attended);
  middle = tensor::add(residual, middle);
  normed = call([&](Tensor x) { return norm(m, layer.post_attention_norm, x); }, middle);
  const Tensor wide = call([&](Tensor x) { return feed_forward(m, layer.mlp, std::move(x)); }, normed);
  residual = layer.residual_after_norm ? normed : middle;
  Tensor out = m.dropout(layer.residual_dropout, wide);
  return tensor::add(residual, out);
}

// Batch and sequence change places: [seq, batch, hidden].
Tensor embed(Modules& m, const Architecture& arch, Tensor ids) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  embeds = tensor::transpose(std::move(embeds), 0, 1);
  return tensor::contiguous(std::move(embeds));
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return embed(m, arch, std::move(x)); }, ids);
  const Tensor cache = rotary_cache(m.context(), arch.max_positions, ids.size(1), arch.rotary.dim / 2, embeds.dtype());
  Tensor hidden = embeds;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind](Tensor x, Tensor extra) { return block(m, kind, std::move(x), std::move(extra)); }, hidden,
        cache);
  }
  return call([&](Tensor x) { return norm(m, arch.final_norm, x); }, hidden);
}

LayerKind block_kind(const ChatGlmConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.head_dim);
  const Dimension kv_heads = axis(Axis::kv_heads, c.kv_heads, c.head_dim);
  const Dimension ffn = axis(Axis::ffn, c.ffn);
  const Dimension fused{{heads.parts[0], kv_heads.parts[0], kv_heads.parts[0]}};
  kind.input_norm = p.rms_norm("input_layernorm", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.kv_heads;
  kind.attention.head_dim = c.head_dim;
  kind.attention.qkv = p.linear("self_attention.query_key_value", hidden, fused, c.qkv_bias);
  kind.attention.o = p.linear("self_attention.dense", heads, hidden, c.bias);
  kind.post_attention_norm = p.rms_norm("post_attention_layernorm", hidden);
  kind.mlp.up = p.linear("mlp.dense_h_to_4h", hidden, {{ffn.parts[0], ffn.parts[0]}}, c.bias);
  kind.mlp.down = p.linear("mlp.dense_4h_to_h", ffn, hidden, c.bias);
  kind.residual_dropout = c.dropout;
  kind.residual_after_norm = c.residual_after_norm;
  return kind;
}

Architecture network(const ChatGlmConfig& c) {
  Architecture arch;
  arch.family = "chatglm";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.bounded_positions = true;
  arch.layer_prefix = "transformer.encoder.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.embedding.word_embeddings", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.rms_norm("transformer.encoder.final_layernorm", hidden);
  arch.head = p.linear("transformer.output_layer", hidden, vocab, false);
  arch.rotary.dim = c.head_dim / 2;
  arch.buffers.push_back({"transformer.rotary_pos_emb.inv_freq", {c.head_dim / 4}, DType::f32, true, true});
  return arch;
}

}  // namespace

Expected<Architecture> build_chatglm(const JsonObject& config) { return read_config(config).map(network); }

// For the loss the logits are converted to fp32, and then back.
Output forward_chatglm(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, hidden);
  out.logits = tensor::transpose(std::move(out.logits), 0, 1);
  out.logits = tensor::contiguous(std::move(out.logits));
  if (!batch.labels) return out;
  out.logits = tensor::to(out.logits, DType::f32);
  const Shifted shifted = shift_by_one(out.logits, batch.labels);
  out.loss = tensor::cross_entropy(shifted.logits, shifted.targets);
  out.logits = tensor::to(out.logits, hidden.dtype());
  out.loss = tensor::to(std::move(out.loss), hidden.dtype());
  return out;
}

}  // namespace ullage::model
