// T5 (transformers: models/t5/modeling_t5.py).
#include "model/families/t5.h"

#include <algorithm>
#include <array>
#include <memory>

#include "model/config_fields.h"
#include "model/families/encoder_decoder.h"

namespace ullage::model {
namespace {

struct T5Config {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t buckets = 0;  // of distances between query and key
  bool gated = false;
  Activation activation = Activation::relu;
  double dropout = 0;
  bool scales_output = true;
};

// The common spelling is an alias that is assigned later, and so wins.
std::int64_t either(Fields& fields, std::string_view own, std::string_view common, std::int64_t fallback,
                    std::int64_t high) {
  return fields.integer(fields.config().contains(common) ? common : own, fallback, high);
}

struct FeedForwardName {
  std::string_view name;
  bool gated;
  Activation activation;
};

constexpr std::array kFeedForwards{
    FeedForwardName{"relu", false, Activation::relu},          FeedForwardName{"gelu", false, Activation::gelu},
    FeedForwardName{"gelu_new", false, Activation::gelu_new},  FeedForwardName{"silu", false, Activation::silu},
    FeedForwardName{"gated-gelu", true, Activation::gelu_new}, FeedForwardName{"gated-relu", true, Activation::relu},
    FeedForwardName{"gated-silu", true, Activation::silu},
};

void read_feed_forward(Fields& fields, T5Config& c) {
  const auto name = fields.config().string("feed_forward_proj", "relu");
  if (!name) return fields.reject(name.error());
  const auto* const found = std::find_if(kFeedForwards.begin(), kFeedForwards.end(),
                                         [&](const FeedForwardName& entry) { return entry.name == *name; });
  if (found == kFeedForwards.end()) {
    return fields.reject("feed_forward_proj",
                         "not modelled; expected relu, gelu, gelu_new, silu or gated-relu, "
                         "gated-gelu, gated-silu");
  }
  c.gated = found->gated;
  c.activation = found->activation;
}

// The word embeddings are tied whatever tie_word_embeddings says; false means version 1.1, which does not scale what
// the head is given.
T5Config read(Fields& fields) {
  T5Config c;
  c.vocab = fields.integer("vocab_size", 32128, kMaxVocab);
  c.hidden = either(fields, "d_model", "hidden_size", 512, kMaxWidth);
  c.head_dim = either(fields, "d_kv", "head_dim", 64, kMaxWidth);
  c.heads = either(fields, "num_heads", "num_attention_heads", 8, kMaxWidth);
  c.intermediate = fields.integer("d_ff", 2048, kMaxWidth);
  c.encoder_layers = either(fields, "num_layers", "num_hidden_layers", 6, kMaxLayers / 2);
  c.decoder_layers = fields.optional_integer("num_decoder_layers", c.encoder_layers, kMaxLayers / 2);
  c.buckets = fields.integer("relative_attention_num_buckets", 32, kMaxPositions);
  c.dropout = fields.probability("dropout_rate", 0.1);
  c.scales_output = fields.optional_boolean("tie_word_embeddings", true);
  read_feed_forward(fields, c);
  if (c.heads * c.head_dim > kMaxWidth) fields.reject("d_kv", "heads are wider together than can be modelled");
  return c;
}

Norm norm_module(ParameterList& p, const std::string& name, const T5Config& c) {
  return p.norm(NormKind::rms_promoted, name, axis(Axis::hidden, c.hidden));
}

// The first layer of a stack holds the biases of all.
Attention attention_module(ParameterList& p, const std::string& name, const T5Config& c, bool has_biases) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension inner = axis(Axis::heads, c.heads, c.head_dim);
  Attention a;
  a.heads = c.heads;
  a.kv_heads = c.heads;
  a.head_dim = c.head_dim;
  a.dropout = c.dropout;
  a.q = p.linear(name + ".q", hidden, inner, false);
  a.k = p.linear(name + ".k", hidden, inner, false);
  a.v = p.linear(name + ".v", hidden, inner, false);
  a.o = p.linear(name + ".o", inner, hidden, false);
  if (has_biases) {
    a.biases =
        p.embedding(name + ".relative_attention_bias", axis(Axis::position, c.buckets), axis(Axis::heads, c.heads));
  }
  return a;
}

LayerKind block_kind(const T5Config& c, bool decodes, bool first) {
  LayerKind kind;
  kind.name = decodes ? "decoder" : "encoder";
  if (first) kind.name += " with biases";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention = attention_module(p, "layer.0.SelfAttention", c, first);
  kind.attention.causal = decodes;
  kind.input_norm = norm_module(p, "layer.0.layer_norm", c);
  if (decodes) {
    kind.cross_attention = attention_module(p, "layer.1.EncDecAttention", c, false);
    kind.cross_norm = norm_module(p, "layer.1.layer_norm", c);
  }
  const std::string last = decodes ? "layer.2." : "layer.1.";
  kind.mlp.gated = c.gated;
  kind.mlp.activation = c.activation;
  kind.mlp.inner_dropout = c.dropout;
  if (c.gated) kind.mlp.gate = p.linear(last + "DenseReluDense.wi_0", hidden, ffn, false);
  kind.mlp.up = p.linear(last + (c.gated ? "DenseReluDense.wi_1" : "DenseReluDense.wi"), hidden, ffn, false);
  kind.mlp.down = p.linear(last + "DenseReluDense.wo", ffn, hidden, false);
  kind.feedforward_norm = norm_module(p, last + "layer_norm", c);
  kind.residual_dropout = c.dropout;
  return kind;
}

void add_stack(Architecture& arch, const T5Config& c, bool decodes, std::int64_t layers) {
  for (std::int64_t i = 0; i < layers; ++i) {
    if (i < 2) arch.kinds.push_back(block_kind(c, decodes, i == 0));
    arch.layers.push_back(static_cast<std::uint8_t>(arch.kinds.size() - 1));
  }
}

Architecture encoder(const T5Config& c) {
  Architecture arch;
  arch.family = "t5";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.encoder_layers = c.encoder_layers;
  arch.encoder_prefix = "encoder.block.";
  arch.layer_prefix = "decoder.block.";
  arch.embedding_dropout = c.dropout;
  add_stack(arch, c, false, c.encoder_layers);
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  const Embedding shared = p.embedding("shared", vocab, hidden);
  arch.embedding = p.embedding("encoder.embed_tokens", vocab, hidden);
  arch.parameters[static_cast<std::size_t>(arch.embedding.weight.index)].tied_to = shared.weight.index;
  arch.encoder_at = arch.parameters.size();
  arch.final_norm = norm_module(p, "encoder.final_layer_norm", c);
  arch.layers_at = arch.parameters.size();
  return arch;
}

Architecture network(const T5Config& c) {
  Architecture arch = encoder(c);
  arch.logits = c.scales_output ? LogitForm::multiplied : LogitForm::plain;
  add_stack(arch, c, true, c.decoder_layers);
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.decoder.embedding = p.embedding("decoder.embed_tokens", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.decoder.final_norm = norm_module(p, "decoder.final_layer_norm", c);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  const std::optional<std::int32_t> shared =
      arch.parameters[static_cast<std::size_t>(arch.embedding.weight.index)].tied_to;
  for (const ParameterRef ref : {arch.decoder.embedding.weight, arch.head.weight})
    arch.parameters[static_cast<std::size_t>(ref.index)].tied_to = shared;
  return arch;
}

// --- forward ---------------------------------------------------------------------------------------------------------

using tensor::Op;

// Numbers of buckets for sizes of distances beyond those that have one each: by their logarithm, up to a last one.
Tensor shared_buckets(tensor::Context& context, const Tensor& size) {
  Tensor number = tensor::to(size, DType::f32);
  number = tensor::div_scalar(std::move(number));
  number = tensor::log(std::move(number));
  number = tensor::div_scalar(std::move(number));
  number = tensor::mul_scalar(std::move(number));
  number = tensor::to(std::move(number), DType::i64);
  number = tensor::add_scalar(std::move(number));
  const Tensor last = tensor::empty(context, Op::ones_like, size.sizes(), DType::i64);
  return tensor::empty(context, Op::maximum, size.sizes(), DType::i64);
}

// _relative_position_bucket: index arithmetic on distances [query, key]. Keys ahead count where they are seen.
Tensor buckets(tensor::Context& context, const Tensor& distance, bool sees_ahead) {
  const tensor::Dims square = distance.sizes();
  Tensor bucket;
  Tensor size;
  if (sees_ahead) {
    Tensor ahead = tensor::empty(context, Op::compare, square, DType::boolean);
    ahead = tensor::to(std::move(ahead), DType::i64);
    ahead = tensor::mul_scalar(std::move(ahead));
    bucket = tensor::add_scalar(std::move(ahead));
    size = tensor::empty(context, Op::abs, square, DType::i64);
  } else {
    {
      const Tensor zeros = tensor::empty(context, Op::zeros_like, square, DType::i64);
      size = tensor::empty(context, Op::maximum, square, DType::i64);
    }
    size = tensor::neg(std::move(size));
  }
  const Tensor is_small = tensor::empty(context, Op::compare, square, DType::boolean);
  const Tensor shared = shared_buckets(context, size);
  Tensor chosen = tensor::empty(context, Op::where, square, DType::i64);
  return bucket ? bucket : tensor::add_scalar(std::move(chosen));
}

// compute_bias: [1, heads, query, key].
Tensor relative_biases(Modules& m, const Attention& a, std::int64_t queries, std::int64_t keys) {
  tensor::Context& context = m.context();
  Tensor query = tensor::empty(context, Op::arange, {queries}, DType::i64);
  query = tensor::empty(context, Op::add, {queries, 1}, DType::i64);
  const Tensor key = tensor::empty(context, Op::arange, {keys}, DType::i64);
  const Tensor distance = tensor::empty(context, Op::sub, {queries, keys}, DType::i64);
  const Tensor bucket = buckets(context, distance, !a.causal);
  Tensor values = call([&](Tensor x) { return m.embedding(a.biases, x); }, bucket);
  values = tensor::transpose(std::move(values), 0, 2);
  values = tensor::transpose(std::move(values), 1, 2);
  return tensor::unsqueeze(std::move(values), 0);
}

// Of an attention that has no biases to itself. With checkpoints they are a leaf, so that a checkpoint that is given
// nothing else has something to differentiate.
Tensor zero_biases(Modules& m, const Tensor& scores) {
  const tensor::Dims sizes{1, scores.size(1), scores.size(2), scores.size(3)};
  Tensor zeros = tensor::empty(m.context(), Op::zeros, sizes, scores.dtype());
  zeros.impl()->leaf_requires_grad = m.checkpoints();
  return zeros;
}

struct Attended {
  Tensor output;
  Tensor biases;  // what was added to the scores, mask included
};

// `attended_to` gives keys and values; without `biases` they are made.
Attended attention(Modules& m, const Attention& a, Tensor hidden, Tensor attended_to, Tensor mask, Tensor biases) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto project = [&](const Linear& linear, const Tensor& from) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, from);
    x = tensor::view(std::move(x), {batch, from.size(1), -1, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  const Tensor query = project(a.q, hidden);
  const Tensor key = project(a.k, attended_to);
  const Tensor value = project(a.v, attended_to);
  Tensor scores;
  {
    Tensor turned = tensor::transpose(key, -2, -1);
    scores = tensor::matmul(query, std::move(turned));
  }
  if (!biases) {
    biases = a.biases.weight ? relative_biases(m, a, seq, key.size(2)) : zero_biases(m, scores);
    if (mask) biases = tensor::add(biases, mask);
  }
  tensor::iadd(scores, biases);
  Tensor weights = tensor::to(scores, DType::f32);
  weights = tensor::softmax(std::move(weights));
  weights = tensor::to(std::move(weights), scores.dtype());
  weights = tensor::dropout(weights, a.dropout);
  Tensor out = tensor::matmul(weights, value);
  out = tensor::transpose(std::move(out), 1, 2);
  out = tensor::contiguous(std::move(out));
  out = tensor::reshape(std::move(out), {batch, seq, a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(biases)};
}

// Norm, attention, dropout and the sum with what came in; `encoded` is empty in self attention.
Attended attention_layer(Modules& m, const Attention& a, const Norm& norm, double dropout, Tensor hidden,
                         const Tensor& encoded, const Tensor& mask, const Tensor& biases) {
  const Tensor normed = call([&](Tensor x) { return m.norm(norm, x); }, hidden);
  Attended attended =
      call([&](Tensor x, Tensor to) { return attention(m, a, x, to ? to : x, mask, biases); }, normed, encoded);
  Tensor dropped = call([&](Tensor x) { return m.dropout(dropout, x); }, attended.output);
  hidden = tensor::add(hidden, std::move(dropped));
  return {std::move(hidden), std::move(attended.biases)};
}

// Autocast's results are cast to the weight's type, which is that of what comes in.
Tensor dense(Modules& m, const Mlp& mlp, Tensor hidden, DType dtype) {
  Tensor gate;
  Tensor up;
  if (mlp.gated) {
    gate = call([&](Tensor x) { return m.linear(mlp.gate, x); }, hidden);
    gate = call([&](Tensor x) { return m.activation(mlp.activation, x); }, std::move(gate));
    up = call([&](Tensor x) { return m.linear(mlp.up, x); }, hidden);
    hidden = tensor::mul(gate, up);
  } else {
    hidden = call([&](Tensor x) { return m.linear(mlp.up, x); }, hidden);
    hidden = call([&](Tensor x) { return m.activation(mlp.activation, x); }, hidden);
  }
  hidden = call([&](Tensor x) { return m.dropout(mlp.inner_dropout, x); }, hidden);
  hidden = tensor::to(hidden, dtype);
  return call([&](Tensor x) { return m.linear(mlp.down, x); }, hidden);
}

Tensor feed_forward_layer(Modules& m, const LayerKind& layer, Tensor hidden) {
  Tensor inner = call([&](Tensor x) { return m.norm(layer.feedforward_norm, x); }, hidden);
  inner = call([&](Tensor x) { return dense(m, layer.mlp, x, hidden.dtype()); }, inner);
  Tensor dropped = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, inner);
  return tensor::add(hidden, std::move(dropped));
}

// In fp16 what leaves a part of a block is clamped, to a bound that depends on whether all of it is finite. CUDA's
// isinf compares the absolute value.
Tensor clamp_infinite(Modules& m, const Tensor& hidden) {
  if (hidden.dtype() != DType::f16) return hidden;
  tensor::Context& context = m.context();
  Tensor high;
  {
    Tensor magnitude;
    if (!context.policy().traced) magnitude = tensor::empty(context, Op::abs, hidden.sizes(), DType::f16);
    Tensor infinite = tensor::empty(context, Op::compare, hidden.sizes(), DType::boolean);
    magnitude.reset();
    const Tensor any = tensor::empty(context, Op::logical_and, {}, DType::boolean);
    infinite.reset();
    const Tensor lower_bound = tensor::empty(context, Op::empty, {}, DType::f32);
    const Tensor upper_bound = tensor::empty(context, Op::empty, {}, DType::f32);
    high = tensor::empty(context, Op::where, {}, DType::f32);
  }
  Tensor low = tensor::neg(high);
  return tensor::clamp(hidden, std::move(low), high);
}

// The biases that a stack's first layer makes and the others are given.
struct Biases {
  Tensor self;
  Tensor cross;
};

// Results of attention stay bound to the end, in `made` too while there is someone to receive them: a rerun's are let
// go.
Tensor block(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& mask, const Biases& biases,
             const Tensor& encoded, const std::weak_ptr<Biases>& made) {
  const Attended self = call(
      [&](Tensor x) {
        return attention_layer(m, layer.attention, layer.input_norm, layer.residual_dropout, x, {}, mask, biases.self);
      },
      hidden);
  hidden = clamp_infinite(m, self.output);
  Attended cross;
  if (encoded) {
    cross = call(
        [&](Tensor x) {
          return attention_layer(m, layer.cross_attention, layer.cross_norm, layer.residual_dropout, x, encoded, {},
                                 biases.cross);
        },
        hidden);
    hidden = clamp_infinite(m, cross.output);
  }
  hidden = call([&](Tensor x) { return feed_forward_layer(m, layer, x); }, hidden);
  hidden = clamp_infinite(m, hidden);
  if (const auto receiver = made.lock()) *receiver = {self.biases, cross.biases};
  return hidden;
}

// A stack behind its embeddings: layers from `from` to `to`, norm and dropout.
Tensor run_stack(Modules& m, const Architecture& arch, std::int64_t from, std::int64_t to, const Norm& final_norm,
                 const Tensor& embeds, const Tensor& mask, const Tensor& encoded) {
  const auto biases = std::make_shared<Biases>();
  Tensor hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeds);
  for (std::int64_t i = from; i < to; ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const std::weak_ptr<Biases> made = biases;
    const auto run = [&m, &kind, mask, given = *biases, encoded, made](Tensor x, Tensor) {
      return block(m, kind, std::move(x), mask, given, encoded, made);
    };
    hidden = m.layer(i, run, hidden);
  }
  const Tensor last_output = hidden;
  hidden = call([&](Tensor x) { return m.norm(final_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, hidden);
  return hidden;
}

Tensor encode(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  return run_stack(m, arch, 0, arch.encoder_layers, arch.final_norm, embeds, {}, {});
}

Tensor decode(Modules& m, const Architecture& arch, Tensor ids, Tensor encoded) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.decoder.embedding, x); }, ids);
  MaskSource source;
  source.positions = false;
  source.eager_only = true;
  const Tensor mask = m.causal_mask({}, embeds, source);
  return run_stack(m, arch, arch.encoder_layers, arch.layer_count(), arch.decoder.final_norm, embeds, mask, encoded);
}

}  // namespace

Expected<Architecture> build_t5(const JsonObject& config) {
  Fields fields(config);
  const T5Config c = read(fields);
  return finish(fields, c).map(network);
}

Expected<Architecture> outline_t5(const JsonObject& config) {
  const auto names = config.strings("architectures");
  const bool encodes = names && std::find(names->begin(), names->end(), "T5EncoderModel") != names->end();
  if (!encodes) return build_t5(config);
  Fields fields(config);
  const T5Config c = read(fields);
  return finish(fields, c).map(encoder);
}

Output forward_t5(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor encoded = call([&](Tensor ids) { return encode(m, arch, ids); }, batch.inputs);
  const Tensor decoder_ids = shift_right(m, batch.labels);
  const Tensor decoded =
      call([&](Tensor ids, Tensor from) { return decode(m, arch, ids, from); }, decoder_ids, encoded);
  Tensor sequence = decoded;
  if (arch.logits == LogitForm::multiplied) sequence = tensor::mul_scalar(sequence);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, sequence);
  out.encoder_hidden = encoded;
  out.loss = token_loss(m, out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
