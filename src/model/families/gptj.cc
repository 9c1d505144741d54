// GPT-J (transformers: models/gptj/modeling_gptj.py).
#include "model/families/gptj.h"

#include <fmt/core.h>

#include "model/families/causal_lm.h"
#include "model/families/partial_rotary.h"

namespace ullage::model {
namespace {

using tensor::Op;
using tensor::RegionOutput;

struct GptjConfig {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t rotary_dim = 0;
  Activation activation = Activation::gelu_new;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  bool tied = false;
};

Expected<GptjConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  GptjConfig c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50400, kMaxVocab);
  c.positions = either("n_positions", "max_position_embeddings", 2048, kMaxPositions);
  c.hidden = either("n_embd", "hidden_size", 4096, kMaxWidth);
  c.layers = either("n_layer", "num_hidden_layers", 28, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 16, kMaxWidth);
  c.rotary_dim = fields.integer("rotary_dim", 64, kMaxWidth);
  c.inner = fields.optional_integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0);
  c.embedding_dropout = fields.probability("embd_pdrop", 0);
  c.attention_dropout = fields.probability("attn_pdrop", 0);
  c.tied = fields.boolean("tie_word_embeddings", false);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  if (c.rotary_dim > c.hidden / c.heads || c.rotary_dim % 2 != 0) {
    fields.reject("rotary_dim", fmt::format("{} of a head's {} dimensions cannot be turned in pairs", c.rotary_dim,
                                            c.hidden / c.heads));
  }
  return finish(fields, std::move(c));
}

// Sines and cosines of the positions, [rows, seq, dim / 2] each; both are parts of one tensor. Every layer copies its
// whole table to pick them.
struct Waves {
  Tensor table;
  Tensor indices;
  Tensor both;
  Tensor sin;
  Tensor cos;
};

Waves waves_of(tensor::Context& context, const Architecture& arch, const Tensor& positions, DType dtype) {
  const tensor::NoGrad no_grad(context);
  const std::int64_t dim = arch.rotary.dim;
  const std::int64_t rows = positions.size(0);
  const std::int64_t seq = positions.size(1);
  Waves out;
  out.table = tensor::empty(context, Op::repeat, {rows, arch.max_positions, dim}, DType::f32);
  out.indices = tensor::empty(context, Op::repeat, {rows, seq, dim}, DType::i64);
  {
    Tensor picked = tensor::empty(context, Op::gather, {rows, seq, dim}, DType::f32);
    out.both = tensor::to(std::move(picked), dtype);
  }
  std::vector<Tensor> parts = tensor::split(out.both, dim / 2, -1);
  out.sin = std::move(parts[0]);
  out.cos = std::move(parts[1]);
  return out;
}

// Each value twice, as neighbours turn together: [rows, seq, 1, dim].
Tensor repeat_pairs(const Tensor& x) {
  tensor::Context& context = x.context();
  const tensor::NoGrad no_grad(context);
  const Tensor pairs = tensor::empty(context, Op::clone, {x.size(0), x.size(1), 1, x.size(2), 2}, x.dtype());
  return tensor::view(pairs, {x.size(0), x.size(1), 1, 2 * x.size(2)});
}

Tensor rotate_every_two(Tensor x_in) {
  Tensor x = std::move(x_in);
  const tensor::Dims sizes = x.sizes();
  const Tensor even = tensor::slice(x, -1, 0, sizes[-1], 2);
  const Tensor odd = tensor::slice(x, -1, 1, sizes[-1], 2);
  Tensor negated = tensor::neg(odd);
  x = tensor::stack_last({std::move(negated), even});
  return tensor::view(std::move(x), sizes);
}

Tensor turn(const Tensor& x, const Waves& waves) {
  const Tensor sin = repeat_pairs(waves.sin);
  const Tensor cos = repeat_pairs(waves.cos);
  Tensor straight = tensor::mul(x, cos);
  Tensor turned = rotate_every_two(x);
  turned = tensor::mul(std::move(turned), sin);
  return tensor::add(std::move(straight), std::move(turned));
}

// Scores in fp32.
AttentionOutput attend(Modules& m, const Attention& a, const Tensor& query_in, const Tensor& key_in,
                       const Tensor& value, const Tensor& mask) {
  const tensor::Scope named(m.context(), m.context().intern("attention"));
  const Tensor query = tensor::to(query_in, DType::f32);
  const Tensor key = tensor::to(key_in, DType::f32);
  Tensor weights;
  {
    Tensor turned = tensor::transpose(key, -1, -2);
    weights = tensor::matmul(query, std::move(turned));
  }
  weights = tensor::div_scalar(weights);
  weights = tensor::add(weights, mask);
  weights = tensor::softmax(weights);
  weights = tensor::to(weights, value.dtype());
  weights = call([&](Tensor x) { return m.dropout(a.dropout, x); }, weights);
  Tensor out = tensor::matmul(weights, value);
  return {std::move(out), std::move(weights)};
}

AttentionOutput attention(Modules& m, const Architecture& arch, const LayerKind& layer, Tensor hidden,
                          const Tensor& positions, const Tensor& mask) {
  const Attention& a = layer.attention;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const tensor::Dims by_head{batch, seq, a.heads, a.head_dim};
  Tensor query = call([&](Tensor x) { return m.linear(a.q, x); }, hidden);
  Tensor key = call([&](Tensor x) { return m.linear(a.k, x); }, hidden);
  Tensor value = call([&](Tensor x) { return m.linear(a.v, x); }, hidden);
  query = tensor::view(std::move(query), by_head);
  key = tensor::view(std::move(key), by_head);
  value = tensor::view(std::move(value), by_head);
  value = tensor::transpose(std::move(value), 1, 2);
  const Waves waves = waves_of(m.context(), arch, positions, key.dtype());
  TurnedAndPassed k = split_rotated(key, arch.rotary.dim);
  TurnedAndPassed q = split_rotated(query, arch.rotary.dim);
  k.turned = turn(k.turned, waves);
  q.turned = turn(q.turned, waves);
  key = tensor::cat({k.turned, k.passed}, -1);
  query = tensor::cat({q.turned, q.passed}, -1);
  key = tensor::transpose(std::move(key), 1, 2);
  query = tensor::transpose(std::move(query), 1, 2);
  m.extend_past(key, value);
  AttentionOutput attended = attend(m, a, query, key, value, mask);
  Tensor out = tensor::transpose(std::move(attended.output), 1, 2);
  out = tensor::contiguous(std::move(out));
  out = tensor::view(std::move(out), {batch, seq, a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  out = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor feed_forward(Modules& m, const LayerKind& layer, const Tensor& hidden) {
  const Tensor out = m.mlp(layer.mlp, hidden);
  return call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, out);
}

RegionOutput block(Modules& m, const Architecture& arch, const LayerKind& layer, Tensor hidden, const Tensor& positions,
                   const Tensor& mask) {
  const Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return attention(m, arch, layer, std::move(x), positions, mask); }, hidden);
  const Tensor wide = call([&](Tensor x) { return feed_forward(m, layer, x); }, hidden);
  Tensor sum = tensor::add(attended.output, wide);
  hidden = tensor::add(std::move(sum), residual);
  return {std::move(hidden), std::move(attended.weights)};
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask({}, embeds, {{}, true, false, true});
  Tensor hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeds);
  Tensor weights;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i,
        [&m, &arch, &kind, positions, mask](Tensor x, Tensor) {
          return block(m, arch, kind, std::move(x), positions, mask);
        },
        hidden, {}, &weights);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind block_kind(const GptjConfig& c) {
  LayerKind kind;
  kind.name = "block";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.inner);
  kind.input_norm = p.layer_norm("ln_1", hidden);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = c.hidden / c.heads;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.eager_only = true;
  kind.attention.k = p.linear("attn.k_proj", hidden, heads, false);
  kind.attention.v = p.linear("attn.v_proj", hidden, heads, false);
  kind.attention.q = p.linear("attn.q_proj", hidden, heads, false);
  kind.attention.o = p.linear("attn.out_proj", heads, hidden, false);
  kind.buffers.push_back({"attn.embed_positions", {c.positions, c.rotary_dim}, DType::f32, false, false});
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.fc_in", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.fc_out", ffn, hidden, true);
  kind.residual_dropout = c.residual_dropout;
  kind.parallel = true;
  return kind;
}

Architecture network(const GptjConfig& c) {
  Architecture arch;
  arch.family = "gptj";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.bounded_positions = true;
  arch.layer_prefix = "transformer.h.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.wte", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(block_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("transformer.ln_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, true);
  if (c.tied) tie_head(arch);
  arch.embedding_dropout = c.embedding_dropout;
  arch.rotary.dim = c.rotary_dim;
  return arch;
}

}  // namespace

Expected<Architecture> build_gptj(const JsonObject& config) { return read_config(config).map(network); }

Output forward_gptj(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
