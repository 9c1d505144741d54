// Falcon (transformers: models/falcon/modeling_falcon.py).
#include "model/families/falcon.h"

#include <fmt/core.h>

#include "model/families/alibi.h"
#include "model/families/causal_lm.h"

namespace ullage::model {
namespace {

using tensor::Op;
using tensor::RegionOutput;

struct FalconConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t max_positions = 0;
  Activation activation = Activation::gelu;
  double hidden_dropout = 0;
  double attention_dropout = 0;
  bool alibi = false;
  bool grouped = false;      // the new decoder architecture: key and value lie behind their group of query heads
  bool multi_query = false;  // one key and value head behind all query heads
  bool parallel = true;
  bool two_norms = false;
  bool bias = false;
  bool tied = true;
  Rotary rotary;
};

void check_norms(Fields& fields, const FalconConfig& c, bool parallel) {
  if (c.grouped && !parallel) {
    fields.reject("parallel_attn",
                  "false contradicts new_decoder_architecture, whose layers are parallel; set it to true");
  }
  if (!c.grouped && parallel && c.two_norms) {
    fields.reject("num_ln_in_parallel_attn", "2 norms belong to the new decoder architecture; set it to 1");
  }
}

// As FalconConfig calls them, or as the models' own code did.
struct FieldNames {
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_kv_heads";
};
constexpr FieldNames kOlderNames{"n_layer", "n_head", "n_head_kv"};

Expected<FalconConfig> read_fields(const JsonObject& config, const FieldNames& names, bool grouped) {
  Fields fields(config);
  FalconConfig c;
  // A null is taken for false.
  const auto flag = [&](std::string_view key, bool fallback) {
    return fields.optional_boolean(key, fallback && !fields.is_null(key));
  };
  c.vocab = fields.integer("vocab_size", 65024, kMaxVocab);
  const std::int64_t hidden = fields.integer("hidden_size", 4544, kMaxWidth);
  c.hidden = fields.optional_integer("n_embed", hidden, kMaxWidth);  // the older name wins
  c.layers = fields.integer(names.layers, 32, kMaxLayers);
  c.heads = fields.integer(names.heads, 71, kMaxWidth);
  c.hidden_dropout = fields.optional_probability("hidden_dropout", 0);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.alibi = flag("alibi", false);
  c.grouped = flag("new_decoder_architecture", grouped);
  c.multi_query = flag("multi_query", true) && !c.grouped;
  c.parallel = flag("parallel_attn", true);
  c.bias = flag("bias", false);
  c.kv_heads = c.multi_query ? 1 : fields.optional_integer(names.kv_heads, c.heads, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.ffn = fields.optional_integer("ffn_hidden_size", 4 * c.hidden, kMaxWidth * 4);
  c.activation = fields.activation("activation", "gelu");
  c.tied = fields.boolean("tie_word_embeddings", true);
  c.two_norms = fields.optional_integer("num_ln_in_parallel_attn", c.grouped ? 2 : 1, kMaxLayers) == 2;
  check_divides(fields, names.heads, c.heads, "hidden_size", c.hidden);
  if (c.heads % c.kv_heads != 0 || (!c.grouped && !c.multi_query && c.kv_heads != c.heads)) {
    fields.reject(names.kv_heads, fmt::format("{} key and value heads do not suit {} query heads of this architecture",
                                              c.kv_heads, c.heads));
  }
  check_norms(fields, c, c.parallel);
  c.rotary = read_rotary(fields, c.hidden / c.heads, c.max_positions);
  return finish(fields, std::move(c));
}

// [batch, seq, heads, dim] each; keys and values with their own number of heads, or repeated for each query head.
struct Heads {
  Tensor query, key, value;
};

Heads split_groups(const Attention& a, const Tensor& fused) {
  const std::int64_t batch = fused.size(0);
  const std::int64_t seq = fused.size(1);
  const std::int64_t queries = a.heads / a.kv_heads;
  const Tensor parted = tensor::view(fused, {batch, seq, a.kv_heads, queries + 2, a.head_dim});
  const Tensor query = tensor::slice(parted, 3, 0, queries);
  Tensor key = tensor::take_one(parted, 3);
  Tensor value = tensor::take_one(parted, 3);
  key = tensor::expand(key, query.sizes());
  value = tensor::expand(value, query.sizes());
  const tensor::Dims merged{batch, seq, a.heads, a.head_dim};
  Heads out;
  out.query = tensor::reshape(query, merged);
  out.key = tensor::reshape(key, merged);
  out.value = tensor::reshape(value, merged);
  return out;
}

Heads split_heads(const LayerKind& layer, const Tensor& fused) {
  const Attention& a = layer.attention;
  const std::int64_t batch = fused.size(0);
  const std::int64_t seq = fused.size(1);
  Heads out;
  if (a.fused_heads == FusedHeads::by_group) return split_groups(a, fused);
  if (a.fused_heads == FusedHeads::by_head) {
    const Tensor parted = tensor::view(fused, {batch, seq, a.heads, 3, a.head_dim});
    out.query = tensor::select(parted, 3, 0);
    out.key = tensor::select(parted, 3, 1);
    out.value = tensor::select(parted, 3, 2);
    return out;
  }
  const Tensor parted = tensor::view(fused, {batch, seq, a.heads + 2, a.head_dim});
  out.query = tensor::slice(parted, 2, 0, a.heads);
  out.key = tensor::take_one(parted, 2);
  out.value = tensor::take_one(parted, 2);
  return out;
}

// [batch, seq, heads, dim] to [batch, heads, seq, dim]
Tensor heads_first(Tensor x_in) {
  Tensor x = std::move(x_in);
  x = tensor::transpose(std::move(x), 1, 2);
  const tensor::Dims sizes = x.sizes();
  return tensor::reshape(std::move(x), sizes);
}

// Divided in place, without dropout.
AttentionOutput composed(const Heads& h, const Tensor& mask, DType dtype) {
  Tensor scores;
  {
    Tensor turned = tensor::transpose(h.key, -1, -2);
    scores = tensor::matmul(h.query, std::move(turned));
  }
  tensor::div_scalar_in_place(scores);
  {
    Tensor masked = tensor::add(scores, mask);
    scores = tensor::softmax(std::move(masked), dtype);
  }
  Tensor out = tensor::matmul(scores, h.value);
  return {std::move(out), std::move(scores)};
}

// Scores of half precision are converted before the biases are added.
AttentionOutput composed_with_alibi(Modules& m, const Attention& a, const Heads& h, const Tensor& alibi,
                                    const Tensor& mask, DType dtype, Tensor bound[3]) {
  {
    Tensor turned = tensor::transpose(h.key, -1, -2);
    bound[0] = tensor::matmul(h.query, std::move(turned));
  }
  bound[1] = is_half(bound[0].dtype()) ? tensor::to(bound[0], DType::f32) : bound[0];
  bound[2] = tensor::add(bound[1], alibi);
  tensor::mul_scalar_in_place(bound[2]);
  Tensor probabilities;
  {
    Tensor masked = tensor::add(bound[2], mask);
    probabilities = tensor::softmax(std::move(masked), dtype);
  }
  probabilities = call([&](Tensor x) { return m.dropout(a.dropout, x); }, probabilities);
  Tensor out = tensor::matmul(probabilities, h.value);
  return {std::move(out), std::move(probabilities)};
}

struct Bias {
  RotaryTables rotary;
  Tensor alibi;
  Tensor mask;
};

AttentionOutput attend(Modules& m, const Attention& a, const Heads& h, const Bias& bias, DType dtype, Tensor bound[3]) {
  const tensor::Scope named(m.context(), m.context().intern("attention"));
  if (m.is_eager(a)) {
    return bias.alibi ? composed_with_alibi(m, a, h, bias.alibi, bias.mask, dtype, bound)
                      : composed(h, bias.mask, dtype);
  }
  const double dropout = bias.alibi ? a.dropout : 0;
  return {tensor::scaled_dot_product_attention(h.query, h.key, h.value, bias.mask, dropout, false), {}};
}

AttentionOutput attention(Modules& m, const LayerKind& layer, Tensor hidden, const Bias& bias) {
  const Attention& a = layer.attention;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  Heads h = split_heads(layer, fused);
  h.query = heads_first(std::move(h.query));
  h.key = heads_first(std::move(h.key));
  h.value = heads_first(std::move(h.value));
  if (!bias.alibi) m.apply_rotary(h.query, h.key, bias.rotary);
  m.extend_past(h.key, h.value);
  Tensor bound[3];  // what the composed function's scores went through, named until it returns
  AttentionOutput attended = attend(m, a, h, bias, hidden.dtype(), bound);
  Tensor out = tensor::transpose(std::move(attended.output), 1, 2);
  out = tensor::reshape(std::move(out), {batch, seq, a.heads * a.head_dim});
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor dropout_add(Modules& m, double p, const Tensor& x, const Tensor& residual) {
  const Tensor dropped = m.dropout(p, x);
  return tensor::add(residual, dropped);
}

RegionOutput decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const Bias& bias) {
  Tensor residual = hidden;
  const Tensor normed = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  Tensor mlp_input = normed;
  if (layer.two_norms) mlp_input = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer, std::move(x), bias); }, normed);
  if (!layer.parallel) {
    residual = dropout_add(m, layer.attention.dropout, attended.output, residual);
    mlp_input = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, residual);
  }
  const Tensor mlp_output = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, mlp_input);
  if (layer.parallel) tensor::iadd(mlp_output, attended.output);
  Tensor out = dropout_add(m, layer.residual_dropout, mlp_output, residual);
  return {std::move(out), std::move(attended.weights)};
}

// The mask takes ALiBi in; the composed function adds it once more.
Tensor mask_with_alibi(Tensor mask, const Tensor& alibi) {
  tensor::Context& context = alibi.context();
  const tensor::NoGrad no_grad(context);
  if (mask.dtype() == DType::boolean) {
    const Tensor zero = tensor::empty(context, Op::cast, {}, alibi.dtype());
    const Tensor lowest = tensor::empty(context, Op::empty, {}, alibi.dtype());
    mask = tensor::empty(context, Op::where, mask.sizes(), alibi.dtype());
  }
  const Tensor scaled = tensor::div_scalar(alibi);
  const Tensor hidden = tensor::empty(context, Op::compare, mask.sizes(), DType::boolean);
  return tensor::masked_fill(scaled, hidden);
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Attention& a = arch.kinds[0].attention;
  Bias bias;
  Tensor tokens;
  if (arch.alibi) {
    tokens = m.counted_tokens();
    if (!tokens) tokens = tensor::empty(m.context(), Op::ones_like, {embeds.size(0), embeds.size(1)}, DType::i64);
    bias.alibi = alibi_of_tokens(tokens, a.heads, DType::bf16, embeds.dtype());
    bias.alibi = tensor::unsqueeze(std::move(bias.alibi), 2);
  }
  const Tensor positions = m.position_ids(embeds);
  bias.mask = m.causal_mask({}, embeds, {{}, false, true});
  if (bias.alibi) bias.mask = mask_with_alibi(std::move(bias.mask), bias.alibi);
  Tensor hidden = embeds;
  bias.rotary = m.rotary(arch.rotary, hidden, positions);
  Tensor weights;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, bias, positions](Tensor x, Tensor) { return decoder_layer(m, kind, std::move(x), bias); },
        hidden, {}, &weights);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

Dimension fused_heads(const FalconConfig& c) {
  const std::int64_t head_dim = c.hidden / c.heads;
  if (c.grouped) return axis(Axis::kv_heads, c.kv_heads, (c.heads / c.kv_heads + 2) * head_dim);
  if (!c.multi_query) return axis(Axis::heads, c.heads, 3 * head_dim);
  return {{{Axis::heads, c.heads, head_dim}, {Axis::kv_heads, 1, head_dim}, {Axis::kv_heads, 1, head_dim}}};
}

Linear by_product(Linear linear) {
  linear.by_product = true;
  return linear;
}

void add_norms(LayerKind& kind, ParameterList& p, const FalconConfig& c, const Dimension& hidden) {
  kind.parallel = c.parallel;
  kind.two_norms = c.parallel && c.two_norms;
  if (!c.parallel) {
    kind.post_attention_norm = p.layer_norm("post_attention_layernorm", hidden);
    kind.input_norm = p.layer_norm("input_layernorm", hidden);
  } else if (kind.two_norms) {
    kind.input_norm = p.layer_norm("ln_attn", hidden);
    kind.post_attention_norm = p.layer_norm("ln_mlp", hidden);
  } else {
    kind.input_norm = p.layer_norm("input_layernorm", hidden);
  }
}

LayerKind layer_kind(const FalconConfig& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const std::int64_t head_dim = c.hidden / c.heads;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension ffn = axis(Axis::ffn, c.ffn);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.kv_heads;
  kind.attention.head_dim = head_dim;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.fused_heads = c.grouped       ? FusedHeads::by_group
                               : c.multi_query ? FusedHeads::in_sequence
                                               : FusedHeads::by_head;
  kind.attention.qkv = by_product(p.linear("self_attention.query_key_value", hidden, fused_heads(c), c.bias));
  kind.attention.o = by_product(p.linear("self_attention.dense", axis(Axis::heads, c.heads, head_dim), hidden, c.bias));
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = by_product(p.linear("mlp.dense_h_to_4h", hidden, ffn, c.bias));
  kind.mlp.down = by_product(p.linear("mlp.dense_4h_to_h", ffn, hidden, c.bias));
  kind.residual_dropout = c.hidden_dropout;
  add_norms(kind, p, c, hidden);
  return kind;
}

Architecture network(const FalconConfig& c) {
  Architecture arch;
  arch.family = "falcon";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "transformer.h.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("transformer.word_embeddings", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.layer_norm("transformer.ln_f", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) tie_head(arch);
  arch.alibi = c.alibi;
  arch.rotary = c.rotary;
  arch.buffers = rotary_buffers(c.rotary);
  return arch;
}

}  // namespace

Expected<Architecture> build_falcon(const JsonObject& config) { return read_fields(config, {}, false).map(network); }

Expected<Architecture> build_refined_web(const JsonObject& config) {
  return read_fields(config, kOlderNames, config.has(kOlderNames.kv_heads)).map(network);
}

Output forward_falcon(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  return causal_lm_output(m, arch, hidden, batch);
}

}  // namespace ullage::model
