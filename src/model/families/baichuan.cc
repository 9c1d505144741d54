// Baichuan 7B and Baichuan 2 7B (modeling_baichuan.py as published with their weights, without the package xformers).
#include "model/families/baichuan.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/causal_lm.h"
#include "model/families/remote_code.h"

namespace ullage::model {
namespace {

using tensor::Op;

struct BaichuanConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t max_positions = 0;
  Activation activation = Activation::silu;
  bool first_generation = false;
};

// The first generation's class is written BaiChuanForCausalLM.
bool is_first_generation(const JsonObject& config) {
  const auto names = config.strings("architectures");
  return names && std::find(names->begin(), names->end(), "BaiChuanForCausalLM") != names->end();
}

Expected<BaichuanConfig> read_config(const JsonObject& config) {
  Fields fields(config);
  BaichuanConfig c;
  c.first_generation = is_first_generation(config);
  c.vocab = fields.integer("vocab_size", c.first_generation ? 64000 : 125696, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 11008, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.activation = fields.activation("hidden_act", "silu");
  c.max_positions = fields.integer("max_position_embeddings", 4096, kMaxPositions);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  if (!config.has("max_position_embeddings")) {
    fields.reject("max_position_embeddings", "missing: the models of 13B, with ALiBi instead, are not modelled");
  }
  if (c.hidden / c.heads % 2 != 0) {
    fields.reject("num_attention_heads",
                  fmt::format("heads of {} are odd; the rotary embedding turns pairs", c.hidden / c.heads));
  }
  return finish(fields, std::move(c));
}

// Turned in fp32, then converted back.
void apply_rotary(Tensor& query, Tensor& key, const RotaryTables& tables) {
  const auto turn = [&](const Tensor& x) {
    Tensor straight;
    {
      const Tensor wide = tensor::to(x, DType::f32);
      straight = tensor::mul(wide, tables.cos);
    }
    Tensor turned;
    {
      const Tensor wide = tensor::to(x, DType::f32);
      turned = rotate_half(wide);
    }
    turned = tensor::mul(std::move(turned), tables.sin);
    return tensor::add(std::move(straight), std::move(turned));
  };
  const Tensor wide_query = turn(query);
  const Tensor wide_key = turn(key);
  Tensor turned_query = tensor::to(wide_query, query.dtype());
  Tensor turned_key = tensor::to(wide_key, key.dtype());
  query = std::move(turned_query);
  key = std::move(turned_key);
}

Tensor attention(Modules& m, const Attention& a, Tensor hidden, const Tensor& mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  fused = tensor::view(std::move(fused), {batch, seq, 3, a.heads, a.head_dim});
  const auto part = [&](std::int64_t index) { return tensor::transpose(tensor::select(fused, 2, index), 1, 2); };
  Tensor query = part(0);
  Tensor key = part(1);
  const Tensor value = part(2);
  {
    const RotaryTables tables = look_up_rotary(m.context(), seq, a.head_dim, DType::f32);
    apply_rotary(query, key, tables);
  }
  Tensor out = tensor::scaled_dot_product_attention(query, key, value, mask, 0, false);
  out = tensor::transpose(std::move(out), 1, 2);
  out = tensor::reshape(std::move(out), {batch, seq, a.heads * a.head_dim});
  return call([&](Tensor x) { return m.linear(a.o, x); }, out);
}

Tensor norm(Modules& m, const Norm& module, const Tensor& x) { return rms_norm(m, module, NormCast::before_weight, x); }

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const Tensor& mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return norm(m, layer.input_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return attention(m, layer.attention, std::move(x), mask); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return norm(m, layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  const std::int64_t batch = ids.size(0);
  const std::int64_t seq = ids.size(1);
  const Tensor positions = tensor::empty(m.context(), Op::arange, {1, seq}, DType::i64);
  const Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor mask = whole_causal_mask(m.context(), batch, seq, embeds.dtype());
  Tensor hidden = embeds;
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i,
        [&m, &kind, positions](Tensor x, Tensor extra) {
          return decoder_layer(m, kind, std::move(x), std::move(extra));
        },
        hidden, mask);
  }
  hidden = call([&](Tensor x) { return norm(m, arch.final_norm, x); }, hidden);
  return hidden;
}

// Baichuan 2 trains with rows of the head scaled to length one.
Tensor head(Modules& m, const Architecture& arch, Tensor hidden) {
  if (!arch.normalized_head) return m.linear(arch.head, hidden);
  const Tensor weight = m.weight(arch.head.weight);
  const Tensor rows = tensor::normalize_last(weight);
  return tensor::linear(hidden, rows, {});
}

LayerKind layer_kind(const BaichuanConfig& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const std::int64_t head_dim = c.hidden / c.heads;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, head_dim);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  const Dimension fused{{heads.parts[0], heads.parts[0], heads.parts[0]}};
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.heads;
  kind.attention.head_dim = head_dim;
  kind.attention.qkv = p.linear("self_attn.W_pack", hidden, fused, false);
  kind.attention.o = p.linear("self_attn.o_proj", heads, hidden, false);
  // Tables of its own in each layer, in fp32.
  kind.buffers.push_back({"self_attn.rotary_emb.cos_cached", {c.max_positions, head_dim}, DType::f32, false, false});
  kind.buffers.push_back({"self_attn.rotary_emb.sin_cached", {c.max_positions, head_dim}, DType::f32, false, false});
  kind.mlp.activation = c.activation;
  kind.mlp.gate = p.linear("mlp.gate_proj", hidden, ffn, false);
  kind.mlp.down = p.linear("mlp.down_proj", ffn, hidden, false);
  kind.mlp.up = p.linear("mlp.up_proj", hidden, ffn, false);
  kind.input_norm = p.rms_norm("input_layernorm", hidden);
  kind.post_attention_norm = p.rms_norm("post_attention_layernorm", hidden);
  return kind;
}

Architecture network(const BaichuanConfig& c) {
  Architecture arch;
  arch.family = "baichuan";
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "model.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.embed_tokens", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.rms_norm("model.norm", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  arch.normalized_head = !c.first_generation;
  return arch;
}

}  // namespace

Expected<Architecture> build_baichuan(const JsonObject& config) { return read_config(config).map(network); }

Output forward_baichuan(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return head(m, arch, std::move(x)); }, hidden);
  if (batch.labels) out.loss = shifted_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
