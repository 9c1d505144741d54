// Qwen, the first generation (modeling_qwen.py as published with Qwen/Qwen-7B, without the package flash-attn; training
// without padding and cache).
#include "model/families/qwen_v1.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"
#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

using tensor::Op;

struct QwenConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t positions = 0;
  double embedding_dropout = 0;
  bool bias = false;
};

Expected<QwenConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  QwenConfig c;
  c.vocab = fields.integer("vocab_size", 151936, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.embedding_dropout = fields.probability("emb_dropout_prob", 0);
  c.positions = fields.integer("max_position_embeddings", 8192, kMaxPositions);
  c.head_dim = fields.integer("kv_channels", 128, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 22016, kMaxWidth);
  c.bias = !fields.boolean("no_bias", true);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  if (c.heads * c.head_dim != c.hidden) {
    fields.reject("kv_channels",
                  fmt::format("{} heads of {} are not as wide as hidden_size {}", c.heads, c.head_dim, c.hidden));
  }
  if (c.head_dim % 2 != 0 || c.intermediate % 2 != 0) {
    fields.reject(c.head_dim % 2 != 0 ? "kv_channels" : "intermediate_size", "is odd, but is halved; set an even one");
  }
  if (const auto part = config.number("rotary_pct", 1); !part || *part != 1) {
    fields.reject("rotary_pct", "only 1.0 is modelled: whole heads are turned");
  }
  return finish(fields, std::move(c));
}

// In fp32, whatever the model's type; the tables are.
Tensor turn(const Tensor& x, const RotaryTables& tables) {
  const Tensor wide = tensor::to(x, DType::f32);
  const std::int64_t dim = x.size(-1);
  Tensor turned = tensor::slice(wide, -1, 0, dim);
  const Tensor passed = tensor::slice(wide, -1, dim, dim);
  Tensor straight = tensor::mul(turned, tables.cos);
  Tensor halves;
  {
    std::vector<Tensor> parts = tensor::split(turned, dim / 2, -1);
    const Tensor first = std::move(parts[0]);
    const Tensor second = std::move(parts[1]);
    Tensor negated = tensor::neg(second);
    halves = tensor::cat({std::move(negated), first}, -1);
  }
  halves = tensor::mul(std::move(halves), tables.sin);
  turned = tensor::add(std::move(straight), std::move(halves));
  Tensor whole = tensor::cat({turned, passed}, -1);
  return tensor::to(std::move(whole), x.dtype());
}

// The lower triangle as Booleans, [1, 1, seq, seq].
Tensor causal_triangle(tensor::Context& context, std::int64_t seq) {
  const tensor::NoGrad no_grad(context);
  const Tensor ones = tensor::empty(context, Op::ones_like, {seq, seq}, DType::boolean);
  const Tensor triangle = tensor::empty(context, Op::compare, {seq, seq}, DType::boolean);
  return tensor::view(triangle, {1, 1, seq, seq});
}

Tensor attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& tables) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const tensor::Dims by_head{batch, seq, a.heads, a.head_dim};
  const Tensor mixed = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  std::vector<Tensor> parts = tensor::split(mixed, a.heads * a.head_dim, 2);
  Tensor query = tensor::view(std::move(parts[0]), by_head);
  Tensor key = tensor::view(std::move(parts[1]), by_head);
  Tensor value = tensor::view(std::move(parts[2]), by_head);
  query = turn(query, tables);
  key = turn(key, tables);
  const Tensor mask = m.is_flash() ? Tensor{} : causal_triangle(m.context(), seq);
  query = tensor::transpose(std::move(query), 1, 2);
  key = tensor::transpose(std::move(key), 1, 2);
  value = tensor::transpose(std::move(value), 1, 2);
  Tensor out = m.is_flash() ? tensor::flash_attention(query, key, value, true)
                            : tensor::scaled_dot_product_attention(query, key, value, mask, 0, false);
  out = tensor::transpose(std::move(out), 1, 2);
  Tensor merged = tensor::contiguous(out);
  merged = tensor::view(std::move(merged), {batch, seq, a.heads * a.head_dim});
  return call([&](Tensor x) { return m.linear(a.o, x); }, merged);
}

Tensor feed_forward(Modules& m, const Mlp& mlp, Tensor hidden) {
  const Tensor up = call([&](Tensor x) { return m.linear(mlp.up, x); }, hidden);
  const Tensor gate = call([&](Tensor x) { return m.linear(mlp.gate, x); }, hidden);
  Tensor activated = tensor::silu(gate);
  const Tensor product = tensor::mul(up, std::move(activated));
  return call([&](Tensor x) { return m.linear(mlp.down, x); }, product);
}

Tensor norm(Modules& m, const Norm& module, const Tensor& x) { return rms_norm(m, module, NormCast::whole, x); }

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& tables) {
  Tensor normed = call([&](Tensor x) { return norm(m, layer.input_norm, x); }, hidden);
  const Tensor attended = call([&](Tensor x) { return attention(m, layer.attention, std::move(x), tables); }, normed);
  const Tensor residual = tensor::add(attended, hidden);
  normed = call([&](Tensor x) { return norm(m, layer.post_attention_norm, x); }, residual);
  const Tensor wide = call([&](Tensor x) { return feed_forward(m, layer.mlp, std::move(x)); }, normed);
  return tensor::add(residual, wide);
}

// Tables of twice the length asked for first, in fp32, [1, rows, 1, dim].
RotaryTables make_rotary_tables(tensor::Context& context, std::int64_t seq, std::int64_t dim) {
  const tensor::NoGrad no_grad(context);
  const std::int64_t rows = kept_rotary_rows(seq);
  {
    Tensor numbers;
    {
      const Tensor counted = tensor::empty(context, Op::arange, {dim / 2}, DType::i64);
      numbers = tensor::to(counted, DType::f32);
    }
    const Tensor frequencies = inverse_frequencies(std::move(numbers));
  }
  const Tensor positions = tensor::empty(context, Op::arange, {rows}, DType::i64);
  Tensor angles;
  {
    const Tensor wide = tensor::to(positions, DType::f32);
    angles = tensor::empty(context, Op::mul, {rows, dim / 2}, DType::f32);
  }
  Tensor both = tensor::cat({angles, angles}, -1);
  both = tensor::view(std::move(both), {1, rows, 1, dim});
  RotaryTables out;
  out.cos = tensor::cos(both);
  out.sin = tensor::sin(both);
  return out;
}

// The module keeps its tables: later steps find them.
RotaryTables rotary_tables(Modules& m, std::int64_t seq, std::int64_t dim) {
  RotaryTables& kept = m.kept_rotary();
  if (!kept.cos) {
    kept = make_rotary_tables(m.context(), seq, dim);
    m.context().retag(kept.cos.storage(), memory::Component::buffers);
    m.context().retag(kept.sin.storage(), memory::Component::buffers);
  }
  RotaryTables out;
  out.cos = tensor::slice(kept.cos, 1, 0, seq);
  out.sin = tensor::slice(kept.sin, 1, 0, seq);
  return out;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor positions = tensor::empty(m.context(), Op::arange, {ids.size(1)}, DType::i64);
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const RotaryTables tables = rotary_tables(m, embeds.size(1), arch.rotary.dim);
  Tensor hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeds);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, tables](Tensor x, Tensor) { return block(m, kind, std::move(x), tables); }, hidden);
  }
  hidden = call([&](Tensor x) { return norm(m, arch.final_norm, x); }, hidden);
  return hidden;
}

// A table of factors for lengths beyond those trained, which training does not use.
constexpr std::int64_t kLengthFactors = 32767;

LayerKind block_kind(const QwenConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.head_dim);
  const Dimension ffn = axis(Axis::ffn, c.intermediate / 2);
  const Dimension fused{{heads.parts[0], heads.parts[0], heads.parts[0]}};
  kind.input_norm = p.rms_norm("ln_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.head_dim;
  kind.attention.qkv = p.linear("attn.c_attn", hidden, fused, true);
  kind.attention.o = p.linear("attn.c_proj", heads, hidden, c.bias);
  kind.buffers.push_back({"attn.masked_bias", {}, DType::f32, true, false});
  kind.buffers.push_back({"attn.logn_tensor", {1, kLengthFactors, 1, 1}, DType::f32, true, false});
  kind.post_attention_norm = p.rms_norm("ln_2", hidden);
  kind.mlp.up = p.linear("mlp.w1", hidden, ffn, c.bias);
  kind.mlp.gate = p.linear("mlp.w2", hidden, ffn, c.bias);
  kind.mlp.down = p.linear("mlp.c_proj", ffn, hidden, c.bias);
  return kind;
}

Architecture network(const QwenConfig& c) {
  Architecture arch;
  arch.family = "qwen";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.layer_prefix = "transformer.h.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.wte", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.rms_norm("transformer.ln_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  arch.embedding_dropout = c.embedding_dropout;
  arch.rotary.dim = c.head_dim;
  arch.rotary.kept = true;
  arch.buffers.push_back({"transformer.rotary_emb.inv_freq", {c.head_dim / 2}, DType::f32, false, false});
  return arch;
}

}  // namespace

Expected<Architecture> build_qwen(const JsonObject& config) { return read_config(config).map(network); }

Output forward_qwen(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, hidden);
  if (batch.labels) out.loss = shifted_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
