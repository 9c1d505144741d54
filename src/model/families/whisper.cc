// Whisper (transformers: models/whisper/modeling_whisper.py).
#include "model/families/whisper.h"

#include "model/config_fields.h"
#include "model/families/encoder_decoder.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kFramesPerPosition = 2;  // the second convolution's stride
constexpr std::int64_t kKernel = 3;

// One of the two stacks.
struct StackConfig {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
  std::int64_t positions = 0;
};

struct WhisperConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t mels = 0;
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

WhisperConfig read(Fields& fields) {
  WhisperConfig c;
  c.vocab = fields.integer("vocab_size", 51865, kMaxVocab);
  c.hidden = either(fields, "d_model", "hidden_size", 384, kMaxWidth);
  c.mels = fields.integer("num_mel_bins", 80, kMaxWidth);
  c.encoder.layers = either(fields, "encoder_layers", "num_hidden_layers", 4, kMaxLayers / 2);
  c.encoder.heads = either(fields, "encoder_attention_heads", "num_attention_heads", 6, kMaxWidth);
  c.encoder.intermediate = fields.integer("encoder_ffn_dim", 1536, kMaxWidth);
  c.encoder.positions = fields.integer("max_source_positions", 1500, kMaxWidth);
  c.decoder.layers = fields.integer("decoder_layers", 4, kMaxLayers / 2);
  c.decoder.heads = fields.integer("decoder_attention_heads", 6, kMaxWidth);
  c.decoder.intermediate = fields.integer("decoder_ffn_dim", 1536, kMaxWidth);
  c.decoder.positions = fields.integer("max_target_positions", 448, kMaxPositions);
  c.activation = fields.activation("activation_function", "gelu");
  c.dropout = fields.probability("dropout", 0);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.activation_dropout = fields.probability("activation_dropout", 0);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "encoder_attention_heads", c.encoder.heads, "d_model", c.hidden);
  check_divides(fields, "decoder_attention_heads", c.decoder.heads, "d_model", c.hidden);
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    if (fields.probability(key, 0) > 0) {
      fields.reject(key, "layers that are left out by chance are not modelled; set it to 0");
    }
  }
  if (fields.boolean("apply_spec_augment", false)) {
    fields.reject("apply_spec_augment", "masks over the spectrum are not modelled; set it to false");
  }
  return c;
}

LayerKind layer_kind(const WhisperConfig& c, const StackConfig& stack, bool decodes) {
  const PairedLayers layers{
      c.hidden,           c.activation,        c.dropout, c.attention_dropout, c.activation_dropout,
      /*key_bias=*/false, /*norms_first=*/true};
  return paired_layer(layers, stack.heads, stack.intermediate, decodes);
}

Conv1d convolution(ParameterList& p, const std::string& name, std::int64_t in, const Dimension& out,
                   std::int64_t stride) {
  Conv1d conv;
  conv.weight = p.add(name + ".weight", {out, axis(Axis::channels, in), axis(Axis::kernel, kKernel)});
  conv.bias = p.add(name + ".bias", {out});
  conv.stride = stride;
  conv.padding = 1;
  return conv;
}

// The encoder's positions are sines that nobody trains.
void add_encoder_sides(Architecture& arch, const WhisperConfig& c) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.ear.mels = c.mels;
  arch.ear.frames = kFramesPerPosition * c.encoder.positions;
  arch.ear.first = convolution(p, "model.encoder.conv1", c.mels, hidden, 1);
  arch.ear.second = convolution(p, "model.encoder.conv2", c.hidden, hidden, kFramesPerPosition);
  arch.positions = p.embedding("model.encoder.embed_positions", axis(Axis::position, c.encoder.positions), hidden);
  arch.parameters.back().frozen = true;
  arch.encoder_at = arch.parameters.size();
  arch.final_norm = p.layer_norm("model.encoder.layer_norm", hidden);
}

Architecture network(const WhisperConfig& c) {
  Architecture arch;
  arch.family = "whisper";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.decoder.positions;
  arch.input = InputKind::sound;
  arch.encoder_layers = c.encoder.layers;
  arch.encoder_prefix = "model.encoder.layers.";
  arch.layer_prefix = "model.decoder.layers.";
  arch.embedding_dropout = c.dropout;
  arch.kinds = {layer_kind(c, c.encoder, false), layer_kind(c, c.decoder, true)};
  arch.layers.assign(static_cast<std::size_t>(c.encoder.layers), 0);
  arch.layers.resize(static_cast<std::size_t>(c.encoder.layers + c.decoder.layers), 1);
  add_encoder_sides(arch, c);
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.decoder.embedding = p.embedding("model.decoder.embed_tokens", vocab, hidden);
  arch.decoder.positions =
      p.embedding("model.decoder.embed_positions", axis(Axis::position, c.decoder.positions), hidden);
  arch.layers_at = arch.parameters.size();
  arch.decoder.final_norm = p.layer_norm("model.decoder.layer_norm", hidden);
  arch.head = p.linear("proj_out", hidden, vocab, false);
  if (c.tied) arch.parameters.back().tied_to = arch.decoder.embedding.weight.index;
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
    x = tensor::transpose(std::move(x), 1, 2);
    return tensor::contiguous(std::move(x));
  };
  Tensor query = project(a.q, hidden);
  query = tensor::mul_scalar(std::move(query));
  query = heads_first(std::move(query));
  Tensor key = project(a.k, attended_to);
  key = heads_first(std::move(key));
  Tensor value = project(a.v, attended_to);
  value = heads_first(std::move(value));
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = project(a.o, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor feed_forward(Modules& m, const LayerKind& layer, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  const Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  Tensor inner = call([&](Tensor x) { return m.linear(layer.mlp.up, x); }, hidden);
  hidden = call([&](Tensor x) { return m.activation(layer.mlp.activation, x); }, std::move(inner));
  hidden = m.dropout(layer.mlp.inner_dropout, hidden);
  hidden = call([&](Tensor x) { return m.linear(layer.mlp.down, x); }, hidden);
  hidden = m.dropout(layer.residual_dropout, hidden);
  return tensor::add(residual, hidden);
}

// `encoded` is empty in the encoder, whose outputs are clamped in fp16. The probabilities stay bound until the next
// ones are, or to the end.
Tensor layer_forward(Modules& m, const LayerKind& layer, Tensor hidden_in, Tensor mask, Tensor encoded) {
  Tensor hidden = std::move(hidden_in);
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, x, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = m.dropout(layer.residual_dropout, hidden);
  hidden = tensor::add(residual, hidden);
  if (encoded) {
    residual = hidden;
    hidden = call([&](Tensor x) { return m.norm(layer.cross_norm, x); }, hidden);
    attended = call([&](Tensor x, Tensor y) { return attention(m, layer.cross_attention, x, y, {}); }, hidden, encoded);
    hidden = std::move(attended.output);
    hidden = m.dropout(layer.residual_dropout, hidden);
    hidden = tensor::add(residual, hidden);
  }
  residual = hidden;
  hidden = feed_forward(m, layer, std::move(hidden));
  if (!encoded && hidden.dtype() == DType::f16) hidden = tensor::clamp(hidden);
  return hidden;
}

Tensor encode(Modules& m, const Architecture& arch, Tensor sound) {
  Tensor heard = call([&](Tensor x) { return m.conv1d(arch.ear.first, x); }, std::move(sound));
  m.mark_input(heard);
  Tensor embeds = m.activation(Activation::gelu, std::move(heard));
  heard = call([&](Tensor x) { return m.conv1d(arch.ear.second, x); }, embeds);
  embeds = m.activation(Activation::gelu, std::move(heard));
  embeds = tensor::transpose(std::move(embeds), 1, 2);
  const Tensor numbers = tensor::empty(m.context(), tensor::Op::arange, {embeds.size(1)}, DType::i64);
  Tensor positions = call([&](Tensor x) { return m.embedding(arch.positions, x); }, numbers);
  Tensor hidden = tensor::add(embeds, std::move(positions));
  hidden = m.dropout(arch.embedding_dropout, hidden);
  for (std::int64_t i = 0; i < arch.encoder_layers; ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const auto run = [&m, &kind](Tensor x, Tensor) { return layer_forward(m, kind, std::move(x), {}, {}); };
    hidden = m.layer(i, run, hidden);
  }
  return call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
}

// Position numbers are made for each sample of the batch.
Tensor position_numbers(Modules& m, std::int64_t batch, std::int64_t seq) {
  tensor::Context& context = m.context();
  Tensor numbers = tensor::empty(context, tensor::Op::arange, {seq}, DType::i64);
  numbers = tensor::add_scalar(std::move(numbers));
  return tensor::empty(context, tensor::Op::repeat, {batch, seq}, DType::i64);
}

Tensor decode(Modules& m, const Architecture& arch, Tensor ids, Tensor encoded) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.decoder.embedding, x); }, ids);
  const Tensor numbers = position_numbers(m, ids.size(0), ids.size(1));
  const Tensor table = m.weight(arch.decoder.positions.weight);
  const Tensor positions = call([&](Tensor rows) { return tensor::index_rows(table, std::move(rows)); }, numbers);
  Tensor hidden = tensor::add(embeds, positions);
  hidden = m.dropout(arch.embedding_dropout, hidden);
  const Tensor mask = m.causal_mask({}, embeds);
  for (std::int64_t i = arch.encoder_layers; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const auto run = [&m, &kind, encoded](Tensor x, Tensor extra) {
      return layer_forward(m, kind, std::move(x), std::move(extra), encoded);
    };
    hidden = m.layer(i, run, hidden, mask);
  }
  return call([&](Tensor x) { return m.norm(arch.decoder.final_norm, x); }, hidden);
}

}  // namespace

Expected<Architecture> build_whisper(const JsonObject& config) {
  Fields fields(config);
  const WhisperConfig c = read(fields);
  return finish(fields, c).map(network);
}

Output forward_whisper(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor decoder_ids = shift_right(m, batch.labels);
  const Tensor encoded = call([&](Tensor sound) { return encode(m, arch, sound); }, batch.inputs);
  const Tensor decoded =
      call([&](Tensor ids, Tensor from) { return decode(m, arch, ids, from); }, decoder_ids, encoded);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, decoded);
  out.encoder_hidden = encoded;
  out.loss = token_loss(m, out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
