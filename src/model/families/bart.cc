// BART (transformers: models/bart/modeling_bart.py).
#include "model/families/bart.h"

#include "model/config_fields.h"
#include "model/families/encoder_decoder.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kPositionOffset = 2;  // rows of the position tables that no token is given

// One of the two stacks.
struct StackConfig {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
};

struct BartConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t positions = 0;
  StackConfig encoder;
  StackConfig decoder;
  Activation activation = Activation::gelu;
  double dropout = 0;
  double attention_dropout = 0;
  double activation_dropout = 0;
  bool tied = true;
};

// The common spelling is an alias that is assigned later, and so wins.
std::int64_t either(Fields& fields, std::string_view own, std::string_view common, std::int64_t fallback,
                    std::int64_t high) {
  return fields.integer(fields.config().contains(common) ? common : own, fallback, high);
}

BartConfig read(Fields& fields) {
  BartConfig c;
  c.vocab = fields.integer("vocab_size", 50265, kMaxVocab);
  c.hidden = either(fields, "d_model", "hidden_size", 1024, kMaxWidth);
  c.positions = fields.integer("max_position_embeddings", 1024, kMaxPositions);
  c.encoder.layers = either(fields, "encoder_layers", "num_hidden_layers", 12, kMaxLayers / 2);
  c.encoder.heads = either(fields, "encoder_attention_heads", "num_attention_heads", 16, kMaxWidth);
  c.encoder.intermediate = fields.integer("encoder_ffn_dim", 4096, kMaxWidth);
  c.decoder.layers = fields.integer("decoder_layers", 12, kMaxLayers / 2);
  c.decoder.heads = fields.integer("decoder_attention_heads", 16, kMaxWidth);
  c.decoder.intermediate = fields.integer("decoder_ffn_dim", 4096, kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu");
  c.dropout = fields.optional_probability("dropout", 0.1);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.activation_dropout = fields.optional_probability("activation_dropout", 0);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "encoder_attention_heads", c.encoder.heads, "d_model", c.hidden);
  check_divides(fields, "decoder_attention_heads", c.decoder.heads, "d_model", c.hidden);
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    if (fields.optional_probability(key, 0) > 0) {
      fields.reject(key, "layers that are left out by chance are not modelled; set it to 0");
    }
  }
  return c;
}

LayerKind layer_kind(const BartConfig& c, const StackConfig& stack, bool decodes) {
  const PairedLayers layers{
      c.hidden,          c.activation,         c.dropout, c.attention_dropout, c.activation_dropout,
      /*key_bias=*/true, /*norms_first=*/false};
  return paired_layer(layers, stack.heads, stack.intermediate, decodes);
}

void tie(Architecture& arch, ParameterRef ref, ParameterRef to) {
  arch.parameters[static_cast<std::size_t>(ref.index)].tied_to = to.index;
}

Architecture network(const BartConfig& c) {
  Architecture arch;
  arch.family = "bart";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.positions;
  arch.encoder_layers = c.encoder.layers;
  arch.encoder_prefix = "model.encoder.layers.";
  arch.layer_prefix = "model.decoder.layers.";
  arch.embedding_dropout = c.dropout;
  arch.kinds = {layer_kind(c, c.encoder, false), layer_kind(c, c.decoder, true)};
  arch.layers.assign(static_cast<std::size_t>(c.encoder.layers), 0);
  arch.layers.resize(static_cast<std::size_t>(c.encoder.layers + c.decoder.layers), 1);
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension rows = axis(Axis::position, c.positions + kPositionOffset);
  ParameterList p(arch.parameters, false);
  const Embedding shared = p.embedding("model.shared", vocab, hidden);
  arch.embedding = p.embedding("model.encoder.embed_tokens", vocab, hidden);
  arch.embedding.by_number = true;
  arch.positions = p.embedding("model.encoder.embed_positions", rows, hidden);
  arch.encoder_at = arch.parameters.size();
  arch.embedding_norm = p.layer_norm("model.encoder.layernorm_embedding", hidden);
  arch.decoder.embedding = p.embedding("model.decoder.embed_tokens", vocab, hidden);
  arch.decoder.embedding.by_number = true;
  arch.decoder.positions = p.embedding("model.decoder.embed_positions", rows, hidden);
  arch.layers_at = arch.parameters.size();
  arch.decoder.embedding_norm = p.layer_norm("model.decoder.layernorm_embedding", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) {
    for (const ParameterRef ref : {arch.embedding.weight, arch.decoder.embedding.weight, arch.head.weight})
      tie(arch, ref, shared.weight);
  } else {
    arch.parameters[static_cast<std::size_t>(shared.weight.index)].unused = true;
  }
  arch.buffers.push_back({"final_logits_bias", {1, c.vocab}, DType::f32, true, true});
  return arch;
}

// --- forward ---------------------------------------------------------------------------------------------------------

// `attended_to` gives keys and values.
AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, Tensor attended_to, Tensor mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto project = [&](const Linear& linear, const Tensor& from) {
    return call([&](Tensor h) { return m.linear(linear, h); }, from);
  };
  const auto heads_first = [&](Tensor x) {
    const std::int64_t length = x.size(1);
    x = tensor::view(std::move(x), {batch, length, -1, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q, hidden);
  query = heads_first(std::move(query));
  Tensor key = project(a.k, attended_to);
  Tensor value = project(a.v, attended_to);
  key = heads_first(std::move(key));
  value = heads_first(std::move(value));
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = project(a.o, out);
  return {std::move(out), std::move(attended.weights)};
}

// Dropout, and the norm of the sum with what came in.
Tensor add_and_norm(Modules& m, const Norm& norm, double dropout, Tensor hidden, const Tensor& residual) {
  hidden = m.dropout(dropout, hidden);
  hidden = tensor::add(residual, hidden);
  return call([&](Tensor x) { return m.norm(norm, x); }, hidden);
}

Tensor feed_forward(Modules& m, const LayerKind& layer, Tensor hidden) {
  const Tensor residual = hidden;
  Tensor inner = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
  hidden = call([&](Tensor x) { return m.activation(layer.mlp.activation, x); }, std::move(inner));
  hidden = m.dropout(layer.mlp.inner_dropout, hidden);
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  return add_and_norm(m, layer.post_feedforward_norm, layer.residual_dropout, std::move(hidden), residual);
}

// In fp16 what leaves an encoder's layer is clamped unless all of it is finite; that test fails on fake tensors.
Tensor clamp_where_infinite(Modules& m, Tensor hidden) {
  if (hidden.dtype() != DType::f16) return hidden;
  tensor::Context& context = m.context();
  {
    const auto make = [&](tensor::Op op, DType dtype) { return tensor::empty(context, op, hidden.sizes(), dtype); };
    Tensor magnitude = make(tensor::Op::abs, hidden.dtype());
    Tensor is_finite = make(tensor::Op::compare, DType::boolean);
    Tensor is_number = make(tensor::Op::compare, DType::boolean);
    const Tensor both = make(tensor::Op::mul, DType::boolean);
    for (Tensor* part : {&magnitude, &is_finite, &is_number}) part->reset();
    tensor::empty(context, tensor::Op::logical_and, {}, DType::boolean);
  }
  return context.policy().traced ? tensor::clamp(hidden) : hidden;
}

// `encoded` is empty in the encoder. The probabilities stay bound until the next ones are, or to the end, and so does
// what the feed-forward part is added to.
Tensor layer_forward(Modules& m, const LayerKind& layer, Tensor hidden, Tensor mask, Tensor encoded) {
  Tensor residual = hidden;
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, x, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = add_and_norm(m, layer.post_attention_norm, layer.residual_dropout, std::move(hidden), residual);
  if (encoded) {
    residual = hidden;
    attended = call([&](Tensor x, Tensor y) { return attention(m, layer.cross_attention, x, y, {}); }, hidden, encoded);
    hidden = std::move(attended.output);
    hidden = add_and_norm(m, layer.cross_norm, layer.residual_dropout, std::move(hidden), residual);
  }
  residual = hidden;
  hidden = feed_forward(m, layer, std::move(hidden));
  if (!encoded) hidden = clamp_where_infinite(m, std::move(hidden));
  return hidden;
}

Tensor encoder_positions(Modules& m, const Embedding& embedding, const Tensor& embeds) {
  tensor::Context& context = m.context();
  const std::int64_t seq = embeds.size(1);
  const Tensor range = tensor::empty(context, tensor::Op::arange, {seq}, DType::i64);
  Tensor positions = tensor::empty(context, tensor::Op::add, {embeds.size(0), seq}, DType::i64);
  return m.embedding(embedding, std::move(positions));
}

Tensor encode(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = encoder_positions(m, arch.positions, embeds);
  Tensor hidden = tensor::add(embeds, positions);
  hidden = call([&](Tensor x) { return m.norm(arch.embedding_norm, x); }, hidden);
  hidden = m.dropout(arch.embedding_dropout, hidden);
  for (std::int64_t i = 0; i < arch.encoder_layers; ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const auto run = [&m, &kind](Tensor x, Tensor) { return layer_forward(m, kind, std::move(x), {}, {}); };
    hidden = m.layer(i, run, hidden);
  }
  return hidden;
}

// The decoder says of all its tokens that they are there.
Tensor decode(Modules& m, const Architecture& arch, Tensor ids, Tensor encoded) {
  tensor::Context& context = m.context();
  const std::int64_t seq = ids.size(1);
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.decoder.embedding, x); }, ids);
  Tensor numbers = tensor::empty(context, tensor::Op::arange, {seq}, DType::i64);
  numbers = tensor::add_scalar(std::move(numbers));
  Tensor mask = tensor::empty(context, tensor::Op::ones_like, {embeds.size(0), seq}, DType::f32);
  mask = m.causal_mask({}, embeds, {.padding = mask, .positions = false});
  Tensor positions = tensor::empty(context, tensor::Op::add, {1, seq}, DType::i64);
  positions = m.embedding(arch.decoder.positions, std::move(positions));
  Tensor hidden = tensor::add(embeds, positions);
  hidden = call([&](Tensor x) { return m.norm(arch.decoder.embedding_norm, x); }, hidden);
  hidden = m.dropout(arch.embedding_dropout, hidden);
  for (std::int64_t i = arch.encoder_layers; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const auto run = [&m, &kind, encoded](Tensor x, Tensor extra) {
      return layer_forward(m, kind, std::move(x), std::move(extra), encoded);
    };
    hidden = m.layer(i, run, hidden, mask);
  }
  return hidden;
}

}  // namespace

Expected<Architecture> build_bart(const JsonObject& config) {
  Fields fields(config);
  const BartConfig c = read(fields);
  return finish(fields, c).map(network);
}

Output forward_bart(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor decoder_ids = shift_right(m, batch.labels);
  const Tensor encoded = call([&](Tensor ids) { return encode(m, arch, ids); }, batch.inputs);
  const Tensor decoded =
      call([&](Tensor ids, Tensor from) { return decode(m, arch, ids, from); }, decoder_ids, encoded);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, decoded);
  const Tensor bias = m.model_buffer(0);
  out.logits = tensor::add(out.logits, bias);
  out.encoder_hidden = encoded;
  out.loss = token_loss(m, out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
