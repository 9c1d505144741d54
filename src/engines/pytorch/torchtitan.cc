// torchtitan/models/llama3/model/model.py, torchtitan/components/loss.py (0.2).
#include "engines/pytorch/torchtitan.h"

#include <fmt/core.h>

#include "engines/pytorch/plain_decoder.h"
#include "model/config_fields.h"
#include "tensor/autocast.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::Architecture;
using model::Axis;
using model::axis;
using model::call;
using model::Dimension;
using model::LayerKind;
using t::Tensor;

Tensor TorchtitanModules::norm(const model::Norm& module, Tensor x) {
  const t::Scope named(context(), scope(module.weight));
  return t::rms_norm(std::move(x), parameter(module.weight));
}

namespace {

// x [batch, seq, heads, dim]: neighbouring dimensions as complex numbers.
Tensor as_complex(const Tensor& x) {
  Tensor pairs = t::to(x, DType::f32);
  pairs = t::reshape(std::move(pairs), {x.size(0), x.size(1), x.size(2), -1, 2});
  return t::view_as_complex(std::move(pairs));
}

Tensor turned(const Tensor& pairs, const Tensor& turns) {
  Tensor product = t::complex_mul(pairs, turns);
  product = t::view_as_real(std::move(product));
  return t::view(std::move(product), {pairs.size(0), pairs.size(1), pairs.size(2), -1});
}

// apply_rotary_emb
void rotate(Tensor& query, Tensor& key, const Tensor& table) {
  const Tensor queries = as_complex(query);
  const Tensor keys = as_complex(key);
  Tensor turns = t::slice(table, 0, 0, queries.size(1));
  turns = t::view(std::move(turns), {1, queries.size(1), 1, queries.size(3)});
  const Tensor query_out = turned(queries, turns);
  const Tensor key_out = turned(keys, turns);
  Tensor cast_query = t::to(query_out, query.dtype());
  Tensor cast_key = t::to(key_out, key.dtype());
  query = std::move(cast_query);
  key = std::move(cast_key);
}

Tensor attention(TorchtitanModules& m, const model::Attention& a, Tensor x_in, const Tensor& table) {
  const Tensor x = std::move(x_in);
  const t::Dims heads{x.size(0), x.size(1), -1, a.head_dim};
  Tensor query = m.project(a.q, x);
  Tensor key = m.project(a.k, x);
  Tensor value = m.project(a.v, x);
  query = t::view(std::move(query), heads);
  key = t::view(std::move(key), heads);
  value = t::view(std::move(value), heads);
  rotate(query, key, table);
  query = t::transpose(std::move(query), 1, 2);
  key = t::transpose(std::move(key), 1, 2);
  value = t::transpose(std::move(value), 1, 2);
  Tensor output;
  {
    const t::Scope named(m.context(), m.context().intern("attention"));
    output = t::scaled_dot_product_attention(query, key, value, {}, 0, a.heads != a.kv_heads);
    output = t::transpose(std::move(output), 1, 2);
    output = t::contiguous(std::move(output));
    output = t::view(std::move(output), {x.size(0), x.size(1), -1});
  }
  return m.project(a.o, output);
}

Tensor feed_forward(TorchtitanModules& m, const model::Mlp& mlp, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor gate = m.project(mlp.gate, x);
  gate = m.activation(mlp.activation, std::move(gate));
  Tensor up = m.project(mlp.up, x);
  Tensor product = t::mul(std::move(gate), std::move(up));
  return m.project(mlp.down, std::move(product));
}

Tensor layer(TorchtitanModules& m, const LayerKind& kind, Tensor x_in, const Tensor& table) {
  const Tensor x = std::move(x_in);
  Tensor h;
  {
    Tensor first = m.normed(kind.input_norm, x);
    Tensor attended =
        call([&](Tensor n) { return attention(m, kind.attention, std::move(n), table); }, std::move(first));
    h = t::add(x, std::move(attended));
  }
  Tensor second = m.normed(kind.post_attention_norm, h);
  Tensor fed = call([&](Tensor n) { return feed_forward(m, kind.mlp, std::move(n)); }, std::move(second));
  return t::add(h, std::move(fed));
}

Tensor decoder(TorchtitanModules& m, const Architecture& arch, Tensor ids_in) {
  const Tensor ids = std::move(ids_in);
  const Tensor table = m.model_buffer(0);
  Tensor h = call([&](Tensor i) { return m.embedding(arch.embedding, std::move(i)); }, ids);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    h = m.layer(
        i, [&m, &kind, table](Tensor x, Tensor) { return layer(m, kind, std::move(x), table); }, h, {}, nullptr);
  }
  h = m.normed(arch.final_norm, h);
  return m.project(arch.head, h);
}

// cross_entropy_loss; a sum takes what a mean does.
Tensor loss_of(const Tensor& logits, const Tensor& labels) {
  Tensor rows = t::view(logits, {-1, logits.size(-1)});
  rows = t::to(std::move(rows), DType::f32);
  Tensor wanted = t::view(labels, {-1});
  return t::cross_entropy(std::move(rows), std::move(wanted));
}

constexpr LayerNames kLayerNames{"attention.wq",    "attention.wk",    "attention.wv",
                                 "attention.wo",    "feed_forward.w1", "feed_forward.w2",
                                 "feed_forward.w3", "attention_norm",  "ffn_norm"};

}  // namespace

Tensor torchtitan_forward(TorchtitanModules& m, const Architecture& arch, Bound& bound) {
  t::Context& context = m.context();
  const t::AutocastRegion autocast(context, m.autocast());
  Tensor output = call([&](Tensor ids) { return decoder(m, arch, std::move(ids)); }, bound.inputs);
  const t::Scope named(context, context.intern("loss"));
  Tensor sum = call([&](Tensor given) { return loss_of(given, bound.labels); }, output);
  bound.loss = t::div(sum, bound.tokens);
  bound.logits.push_back(std::move(output));
  return sum;
}

Expected<Architecture> torchtitan_architecture(const Architecture& from, const TrainOptions& options) {
  const bool biased = is_plain_decoder(from) && from.kinds[0].attention.q.bias;
  if (!is_plain_decoder(from) || biased || from.kinds[0].mlp.activation != model::Activation::silu) {
    return fail(ErrorCode::unsupported, "--modules",
                fmt::format("torchtitan's Llama is no {}; leave --modules at transformers", from.family));
  }
  Architecture out = outline_of(from, "layers.");
  const Dimension vocab = axis(Axis::vocab, from.vocab);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  model::ParameterList p(out.parameters, false);
  out.embedding = p.embedding("tok_embeddings", vocab, hidden);
  out.layers_at = 1;
  out.layers = from.layers;
  out.kinds.push_back(renamed_layer(from, kLayerNames));
  out.final_norm = p.rms_norm("norm", hidden);
  out.head = p.linear("output", hidden, vocab, false);
  out.rotary = from.rotary;
  out.buffers.push_back({"freqs_cis", {options.seq_len, from.rotary.dim / 2}, DType::c64, false, false});
  return out;
}

}  // namespace ullage::engines::pytorch
