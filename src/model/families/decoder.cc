#include "model/families/decoder.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/causal_lm.h"
#include "model/families/router_loss.h"

namespace ullage::model {
namespace {

void check_heads(Fields& fields, const DecoderConfig& c) {
  if (c.heads % c.kv_heads != 0) {
    fields.reject(
        "num_key_value_heads",
        fmt::format("{} key and value heads do not divide {} query heads; set a divisor", c.kv_heads, c.heads));
  }
  if (c.heads * c.head_dim > kMaxWidth) {
    fields.reject("head_dim", fmt::format("{} heads of {} are wider than any model; expected at most {} in all",
                                          c.heads, c.head_dim, kMaxWidth));
  }
}

std::int64_t read_kv_heads(Fields& fields, const DecoderDefaults& defaults, std::int64_t heads) {
  constexpr std::string_view kKey = "num_key_value_heads";
  if (defaults.null_kv_heads && fields.is_null(kKey)) return heads;
  return fields.integer(kKey, defaults.kv_heads == 0 ? heads : defaults.kv_heads, kMaxWidth);
}

}  // namespace

DecoderConfig read_decoder(Fields& fields, const DecoderDefaults& defaults) {
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", defaults.vocab, kMaxVocab);
  c.hidden = fields.integer("hidden_size", defaults.hidden, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", defaults.layers, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", defaults.heads, kMaxWidth);
  c.activation = fields.activation(defaults.activation_key, defaults.activation);
  c.tied = fields.boolean("tie_word_embeddings", defaults.tied);
  const std::int64_t share = std::max<std::int64_t>(1, c.hidden / c.heads);
  c.head_dim = fields.optional_integer("head_dim", defaults.head_dim == 0 ? share : defaults.head_dim, kMaxWidth);
  // Most classes would round the width of a head down; nobody means that.
  if (defaults.head_dim == 0 && !fields.has("head_dim"))
    check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.intermediate = fields.integer("intermediate_size", defaults.intermediate, kMaxWidth);
  c.kv_heads = read_kv_heads(fields, defaults, c.heads);
  c.max_positions = fields.integer("max_position_embeddings", defaults.max_positions, kMaxPositions);
  check_heads(fields, c);
  return c;
}

void read_attention_bias(Fields& fields, DecoderConfig& c) {
  c.qkv_bias = c.output_bias = fields.boolean("attention_bias", false);
}

void read_layer_types(Fields& fields, DecoderConfig& c, bool always, const std::function<bool(std::int64_t)>& slides) {
  const std::vector<bool> named = fields.sliding_layers("layer_types", c.layers);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const bool sliding = named.empty() ? slides(i) : named[static_cast<std::size_t>(i)];
    c.traits.push_back({sliding, true});
  }
  const bool any = std::any_of(c.traits.begin(), c.traits.end(), [](const LayerTraits& t) { return t.slides; });
  if (!always && !any) return;
  if (!c.window) {
    fields.reject("sliding_window", "is null, but layers have a sliding window; give its width in tokens");
    return;
  }
  c.mask_windows.push_back(c.window);
}

void slide_everywhere(DecoderConfig& c) {
  c.mask_windows = {c.window};
  c.traits.assign(static_cast<std::size_t>(c.layers), {c.window.has_value(), true});
}

// --- parameters ------------------------------------------------------------------------------------------------------

Dimension hidden_axis(const DecoderConfig& c) { return axis(Axis::hidden, c.hidden); }

void add_projections(ParameterList& p, LayerKind& layer, const DecoderConfig& c) {
  const Dimension hidden = hidden_axis(c);
  const Dimension q = axis(Axis::heads, c.heads, c.head_dim);
  const Dimension kv = axis(Axis::kv_heads, c.kv_heads, c.head_dim);
  layer.attention.q = p.linear("self_attn.q_proj", hidden, q, c.qkv_bias);
  layer.attention.k = p.linear("self_attn.k_proj", hidden, kv, c.qkv_bias);
  layer.attention.v = p.linear("self_attn.v_proj", hidden, kv, c.qkv_bias);
  layer.attention.o = p.linear("self_attn.o_proj", q, hidden, c.output_bias);
}

void add_gated_mlp(ParameterList& p, LayerKind& layer, const DecoderConfig& c) {
  const Dimension hidden = hidden_axis(c);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  layer.mlp.gate = p.linear("mlp.gate_proj", hidden, ffn, c.mlp_bias);
  layer.mlp.up = p.linear("mlp.up_proj", hidden, ffn, c.mlp_bias);
  layer.mlp.down = p.linear("mlp.down_proj", ffn, hidden, c.mlp_bias);
}

void add_fused_mlp(ParameterList& p, LayerKind& layer, const DecoderConfig& c) {
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  const Dimension gate_and_up{{ffn.parts[0], ffn.parts[0]}};
  layer.mlp.up = p.linear("mlp.gate_up_proj", hidden_axis(c), gate_and_up, false);
  layer.mlp.down = p.linear("mlp.down_proj", ffn, hidden_axis(c), false);
}

void add_norms(ParameterList& p, LayerKind& layer, const DecoderConfig& c, NormKind kind) {
  layer.input_norm = p.norm(kind, "input_layernorm", hidden_axis(c));
  layer.post_attention_norm = p.norm(kind, "post_attention_layernorm", hidden_axis(c));
}

LayerKind empty_layer(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer;
  layer.name = "decoder";
  layer.attention.heads = c.heads;
  layer.attention.kv_heads = c.kv_heads;
  layer.attention.head_dim = c.head_dim;
  layer.attention.dropout = c.attention_dropout;
  layer.attention.rotates = traits.rotates;
  if (traits.slides) {
    layer.attention.window = c.window;
    layer.attention.mask = static_cast<std::uint8_t>(c.mask_windows.size() - 1);
  }
  layer.mlp.activation = c.activation;
  layer.residual_dropout = c.residual_dropout;
  return layer;
}

Architecture decoder(const DecoderConfig& c, std::string_view family, NormKind final_norm,
                     const std::function<LayerKind(const DecoderConfig& c, const LayerTraits& traits)>& make) {
  Architecture arch;
  arch.family = family;
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.mask_windows = c.mask_windows;
  arch.embedding_dropout = c.embedding_dropout;
  arch.layer_prefix = "model.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.embed_tokens", vocab, hidden_axis(c));
  arch.layers_at = arch.parameters.size();
  std::vector<LayerTraits> seen;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const LayerTraits traits = c.traits.empty() ? LayerTraits{} : c.traits[static_cast<std::size_t>(i)];
    const auto at = std::find(seen.begin(), seen.end(), traits);
    arch.layers.push_back(static_cast<std::uint8_t>(at - seen.begin()));
    if (at != seen.end()) continue;
    seen.push_back(traits);
    arch.kinds.push_back(make(c, traits));
  }
  arch.final_norm = p.norm(final_norm, "model.norm", hidden_axis(c));
  arch.head = p.linear("lm_head", hidden_axis(c), vocab, false);
  if (c.tied) arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
  arch.rotary = c.rotary;
  arch.buffers = rotary_buffers(c.rotary);
  arch.balances_experts = c.mixture.balances;
  return arch;
}

void add_embedding_scale(Architecture& architecture) {
  architecture.embedding.scale = static_cast<std::int32_t>(architecture.buffers.size());
  architecture.buffers.push_back({"model.embed_tokens.embed_scale", {}, DType::f32, true, false});
}

// --- forward ---------------------------------------------------------------------------------------------------------

Tensor split_heads(Tensor x_in, std::int64_t head_dim) {
  Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  return tensor::view(std::move(x), {batch, seq, -1, head_dim});
}

AttentionOutput attend(Modules& m, const Attention& a, Tensor query, Tensor key, Tensor value,
                       const RotaryTables& rotary, Tensor mask) {
  if (a.rotates) m.apply_rotary(query, key, rotary);
  if (a.caches) m.cache(a, key, value);
  return attend_rotated(m, a, std::move(query), std::move(key), std::move(value), std::move(mask));
}

// Query, key, value and the probabilities stay bound to the end of the function. Locals, because compilers differ in
// the order in which they let parameters go.
AttentionOutput attend_rotated(Modules& m, const Attention& a, Tensor query_in, Tensor key_in, Tensor value_in,
                               Tensor mask_in) {
  const Tensor query = std::move(query_in);
  Tensor key = std::move(key_in);
  Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  const std::int64_t batch = query.size(0);
  const std::int64_t seq = query.size(2);
  m.extend_past(key, value);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  out = m.dropout(a.output_dropout, out);
  return {std::move(out), std::move(attended.weights)};
}

AttentionOutput llama_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                Tensor mask) {
  const auto project = [&](const Linear& linear) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = split_heads(std::move(x), a.head_dim);
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

Tensor dense_feed_forward(Modules& m, const LayerKind& layer, Tensor hidden) {
  return m.mlp(layer.mlp, std::move(hidden));
}

Tensor pre_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                      const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, attention, dense_feed_forward, std::move(hidden), rotary, std::move(mask));
}

Tensor pre_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, FeedForward feed_forward,
                      Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return feed_forward(m, layer, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Tensor llama_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, llama_attention, std::move(hidden), rotary, std::move(mask));
}

namespace {

Tensor body(Modules& m, const Architecture& arch, Tensor ids, LayerFunction layer) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  if (arch.multiplies_embeddings && !arch.multiplies_behind_masks) embeds = tensor::mul_scalar(embeds);
  const Tensor positions = m.position_ids(embeds);
  std::vector<Tensor> masks;
  MaskSource source;
  source.positions = arch.masks_know_positions;
  source.eager_only = arch.kinds[0].attention.eager_only;
  for (const auto& window : arch.mask_windows) masks.push_back(m.causal_mask(window, embeds, source));
  if (arch.multiplies_behind_masks) embeds = tensor::mul_scalar(embeds);
  Tensor hidden = embeds;
  hidden = m.dropout(arch.embedding_dropout, hidden);
  RotaryTables rotary;
  if (arch.rotary.dim > 0) rotary = m.rotary(arch.rotary, hidden, positions);
  const RotaryTables local = arch.local_rotary.dim > 0 ? m.rotary(arch.local_rotary, hidden, positions) : rotary;
  // Keyword arguments, position ids among them, live as long as a checkpointed layer.
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const RotaryTables& tables = kind.attention.window ? local : rotary;
    hidden = m.layer(
        i,
        [&m, &kind, layer, tables, mask = masks[kind.attention.mask], positions](Tensor x, Tensor) {
          return layer(m, kind, std::move(x), tables, mask);
        },
        hidden);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  for (Tensor& mask : masks) mask.reset();  // first to last, whatever the standard library does
  return hidden;
}

Tensor finish_logits(LogitForm form, Tensor logits) {
  switch (form) {
    case LogitForm::plain: break;
    case LogitForm::multiplied: logits = tensor::mul_scalar(logits); break;
    case LogitForm::divided: logits = tensor::div_scalar(logits); break;
    case LogitForm::softcapped:
      logits = tensor::div_scalar(logits);
      logits = tensor::tanh(logits);
      logits = tensor::mul_scalar(logits);
      break;
  }
  return logits;
}

}  // namespace

Output forward_decoder(Modules& m, const Architecture& arch, Batch batch, LayerFunction layer) {
  Output out;
  Tensor hidden;
  {
    const CollectedRouterLogits collected(m, arch.balances_experts ? &out.router_logits : nullptr);
    hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids), layer); }, batch.inputs);
  }
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, kept_tokens(hidden, batch));
  out.logits = finish_logits(arch.logits, std::move(out.logits));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  if (arch.balances_experts) add_balance(arch, out);
  return out;
}

}  // namespace ullage::model
