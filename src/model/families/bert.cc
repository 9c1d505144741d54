// BERT and RoBERTa as masked language models (transformers: models/bert/modeling_bert.py,
// models/roberta/modeling_roberta.py).
#include "model/families/bert.h"

#include "model/config_fields.h"
#include "model/families/encoder_decoder.h"

namespace ullage::model {
namespace {

struct BertConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
  std::int64_t position_rows = 0;
  std::int64_t token_types = 0;
  Activation activation = Activation::gelu;
  double dropout = 0;
  double attention_dropout = 0;
  bool tied = true;
};

// What the two families call their parts, and where they differ.
struct Names {
  std::string_view family;
  std::string_view body;
  std::string_view head_dense;
  std::string_view head_norm;
  std::string_view head;
  bool positions_last;  // of the embeddings, they are registered behind the norm
};

constexpr Names kBert{
    "bert", "bert.", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions",
    false};
constexpr Names kRoberta{"roberta", "roberta.", "lm_head.dense", "lm_head.layer_norm", "lm_head", true};

BertConfig read(Fields& fields, std::int64_t vocab) {
  BertConfig c;
  c.vocab = fields.integer("vocab_size", vocab, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 12, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 12, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 3072, kMaxWidth);
  c.activation = fields.activation("hidden_act", "gelu");
  c.dropout = fields.probability("hidden_dropout_prob", 0.1);
  c.attention_dropout = fields.probability("attention_probs_dropout_prob", 0.1);
  c.position_rows = fields.integer("max_position_embeddings", 512, kMaxPositions);
  c.token_types = fields.integer("type_vocab_size", 2, kMaxVocab);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  for (const std::string_view key : {"is_decoder", "add_cross_attention"}) {
    if (fields.boolean(key, false)) fields.reject(key, "only the encoder is modelled; set it to false");
  }
  if (fields.count("chunk_size_feed_forward", 0, kMaxPositions) != 0) {
    fields.reject("chunk_size_feed_forward", "feed-forward in chunks is not modelled; set it to 0");
  }
  return c;
}

LayerKind layer_kind(const BertConfig& c) {
  LayerKind kind;
  kind.name = "encoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  Attention& a = kind.attention;
  a.heads = c.heads;
  a.kv_heads = c.heads;
  a.head_dim = c.hidden / c.heads;
  a.dropout = c.attention_dropout;
  a.softmax_in_fp32 = false;
  a.plain_softmax = true;
  a.groups_keys = false;
  a.causal = false;
  a.q = p.linear("attention.self.query", hidden, heads, true);
  a.k = p.linear("attention.self.key", hidden, heads, true);
  a.v = p.linear("attention.self.value", hidden, heads, true);
  a.o = p.linear("attention.output.dense", heads, hidden, true);
  kind.post_attention_norm = p.layer_norm("attention.output.LayerNorm", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("intermediate.dense", hidden, ffn, true);
  kind.mlp.down = p.linear("output.dense", ffn, hidden, true);
  kind.post_feedforward_norm = p.layer_norm("output.LayerNorm", hidden);
  kind.residual_dropout = c.dropout;
  return kind;
}

void add_embeddings(Architecture& arch, const BertConfig& c, const Names& names) {
  const std::string prefix = std::string(names.body) + "embeddings.";
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding(prefix + "word_embeddings", axis(Axis::vocab, c.vocab), hidden);
  const auto add_positions = [&] {
    arch.positions = p.embedding(prefix + "position_embeddings", axis(Axis::position, c.position_rows), hidden);
  };
  if (!names.positions_last) add_positions();
  arch.token_types = p.embedding(prefix + "token_type_embeddings", axis(Axis::classes, c.token_types), hidden);
  arch.embedding_norm = p.layer_norm(prefix + "LayerNorm", hidden);
  if (names.positions_last) add_positions();
  arch.buffers.push_back({prefix + "position_ids", {1, c.position_rows}, DType::i64, false, false});
  arch.buffers.push_back({prefix + "token_type_ids", {1, c.position_rows}, DType::i64, false, false});
}

// The head has a bias of its own, which the output projection's is tied to; untied, the former is left unused.
void add_head(Architecture& arch, const BertConfig& c, const Names& names) {
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  const ParameterRef bias = p.add(std::string(names.head) + ".bias", {vocab});
  arch.head_transform.dense = p.linear(std::string(names.head_dense), hidden, hidden, true);
  arch.head_transform.norm = p.layer_norm(std::string(names.head_norm), hidden);
  arch.head = p.linear(std::string(names.head) + ".decoder", hidden, vocab, true);
  const auto parameter = [&](ParameterRef ref) -> Parameter& {
    return arch.parameters[static_cast<std::size_t>(ref.index)];
  };
  if (!c.tied) {
    parameter(bias).unused = true;
    return;
  }
  parameter(arch.head.weight).tied_to = arch.embedding.weight.index;
  parameter(arch.head.bias).tied_to = bias.index;
}

Architecture network(const BertConfig& c, const Names& names) {
  Architecture arch;
  arch.family = names.family;
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.position_rows;
  arch.layer_prefix = std::string(names.body) + "encoder.layer.";
  arch.embedding_dropout = c.dropout;
  add_embeddings(arch, c, names);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  add_head(arch, c, names);
  return arch;
}

// --- forward ---------------------------------------------------------------------------------------------------------

AttentionOutput self_attention(Modules& m, const Attention& a, Tensor hidden) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto project = [&](const Linear& linear) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = tensor::view(std::move(x), {batch, seq, -1, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  const Tensor query = project(a.q);
  const Tensor key = project(a.k);
  const Tensor value = project(a.v);
  AttentionOutput attended = m.attention(a, query, key, value, {});
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  return {tensor::contiguous(std::move(out)), std::move(attended.weights)};
}

// Projection, dropout, and the norm of the sum with what came in.
Tensor output(Modules& m, const Linear& dense, const Norm& norm, double dropout, Tensor hidden, const Tensor& input) {
  hidden = call([&](Tensor x) { return m.linear(dense, x); }, hidden);
  hidden = call([&](Tensor x) { return m.dropout(dropout, x); }, hidden);
  Tensor sum = tensor::add(hidden, input);
  hidden = call([&](Tensor x) { return m.norm(norm, x); }, std::move(sum));
  return hidden;
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden) {
  AttentionOutput attended = call([&](Tensor x) { return self_attention(m, layer.attention, x); }, hidden);
  attended.output = call(
      [&](Tensor x, Tensor input) {
        return output(m, layer.attention.o, layer.post_attention_norm, layer.residual_dropout, x, input);
      },
      attended.output, hidden);
  return attended;
}

Tensor intermediate(Modules& m, const Mlp& mlp, Tensor hidden) {
  hidden = call([&](Tensor x) { return m.linear(mlp.up, x); }, hidden);
  hidden = call([&](Tensor x) { return m.activation(mlp.activation, x); }, hidden);
  return hidden;
}

// The probabilities stay bound beside the feed-forward.
Tensor layer_forward(Modules& m, const LayerKind& layer, Tensor hidden) {
  const AttentionOutput attended = call([&](Tensor x) { return attention(m, layer, x); }, hidden);
  const Tensor inner = call([&](Tensor x) { return intermediate(m, layer.mlp, x); }, attended.output);
  return call(
      [&](Tensor x, Tensor input) {
        return output(m, layer.mlp.down, layer.post_feedforward_norm, layer.residual_dropout, x, input);
      },
      inner, attended.output);
}

// Token types are looked up in a buffer of zeros, by position.
Tensor embed(Modules& m, const Architecture& arch, Tensor ids, Tensor positions) {
  const std::int64_t batch = ids.size(0);
  const std::int64_t seq = ids.size(1);
  Tensor types = tensor::empty(m.context(), tensor::Op::gather, positions.sizes(), DType::i64);
  types = tensor::expand(std::move(types), {batch, seq});
  const Tensor words = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor type_embeddings = call([&](Tensor x) { return m.embedding(arch.token_types, x); }, types);
  Tensor sum = tensor::add(words, type_embeddings);
  const Tensor position_embeddings = call([&](Tensor x) { return m.embedding(arch.positions, x); }, positions);
  sum = tensor::add(sum, position_embeddings);
  sum = call([&](Tensor x) { return m.norm(arch.embedding_norm, x); }, sum);
  return call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, sum);
}

using PositionIds = Tensor (*)(Modules& m, const Tensor& ids);

Tensor buffered_positions(Modules& m, const Tensor& ids) { return tensor::slice(m.model_buffer(0), 1, 0, ids.size(1)); }

// create_position_ids_from_input_ids: a running count of what is no padding.
Tensor counted_positions(Modules& m, const Tensor& ids) {
  tensor::Context& context = m.context();
  const tensor::Scope named(context, context.intern("roberta.embeddings"));
  Tensor mask = tensor::empty(context, tensor::Op::compare, ids.sizes(), DType::boolean);
  mask = tensor::to(mask, DType::i32);
  Tensor count = tensor::empty(context, tensor::Op::cumsum, ids.sizes(), DType::i64);
  count = tensor::to(count, DType::i32);
  count = tensor::add_scalar(std::move(count));
  count = tensor::mul(std::move(count), mask);
  Tensor wide = tensor::to(count, DType::i64);
  return tensor::add_scalar(std::move(wide));
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids, PositionIds position_ids) {
  const Tensor embedded = call([&](Tensor x) { return embed(m, arch, x, position_ids(m, x)); }, ids);
  Tensor hidden = embedded;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind](Tensor x, Tensor) { return layer_forward(m, kind, std::move(x)); }, hidden);
  }
  return hidden;
}

Tensor head(Modules& m, const Architecture& arch, Tensor hidden) {
  const HeadTransform& transform = arch.head_transform;
  hidden = call(
      [&](Tensor x) {
        x = call([&](Tensor h) { return m.linear(transform.dense, h); }, x);
        x = call([&](Tensor h) { return m.activation(transform.activation, h); }, x);
        return call([&](Tensor h) { return m.norm(transform.norm, h); }, x);
      },
      hidden);
  return call([&](Tensor x) { return m.linear(arch.head, x); }, hidden);
}

Output forward(Modules& m, const Architecture& arch, Batch batch, PositionIds position_ids) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, ids, position_ids); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return head(m, arch, x); }, hidden);
  if (batch.labels) out.loss = token_loss(m, out.logits, batch.labels);
  return out;
}

}  // namespace

Expected<Architecture> build_bert(const JsonObject& config) {
  Fields fields(config);
  const BertConfig c = read(fields, 30522);
  return finish(fields, c).map([](const BertConfig& known) {
    Architecture arch = network(known, kBert);
    arch.head_transform.activation = known.activation;
    return arch;
  });
}

// Position numbers begin behind that of padding. The head's activation is fixed.
Expected<Architecture> build_roberta(const JsonObject& config) {
  Fields fields(config);
  const BertConfig c = read(fields, 50265);
  const std::int64_t padding = fields.count("pad_token_id", 1, kMaxVocab);
  if (padding + 1 >= c.position_rows) {
    fields.reject("max_position_embeddings", "leaves no position behind that of padding; raise it");
  }
  return finish(fields, c).map([padding](const BertConfig& known) {
    Architecture arch = network(known, kRoberta);
    arch.max_positions = known.position_rows - padding - 1;
    return arch;
  });
}

Output forward_bert(Modules& m, const Architecture& arch, Batch batch) {
  return forward(m, arch, std::move(batch), buffered_positions);
}

Output forward_roberta(Modules& m, const Architecture& arch, Batch batch) {
  return forward(m, arch, std::move(batch), counted_positions);
}

}  // namespace ullage::model
