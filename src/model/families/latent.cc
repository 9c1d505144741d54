#include "model/families/latent.h"

#include <fmt/core.h>

namespace ullage::model {

void read_latent(Fields& fields, DecoderConfig& c, const LatentDefaults& defaults) {
  constexpr std::string_view kQueryRank = "q_lora_rank";
  if (!fields.is_null(kQueryRank)) c.latent.q_rank = fields.integer(kQueryRank, defaults.q_rank, kMaxWidth);
  c.latent.kv_rank = fields.integer("kv_lora_rank", defaults.kv_rank, kMaxWidth);
  c.latent.nope_dim = fields.integer("qk_nope_head_dim", defaults.nope_dim, kMaxWidth);
  c.latent.rope_dim = fields.integer("qk_rope_head_dim", defaults.rope_dim, kMaxWidth);
  c.latent.value_dim = fields.integer("v_head_dim", defaults.value_dim, kMaxWidth);
  c.head_dim = c.latent.nope_dim + c.latent.rope_dim;
  if (c.kv_heads != c.heads) {
    fields.reject("num_key_value_heads", fmt::format("{}, but latent attention makes keys and values for each of {} "
                                                     "heads; leave the field out",
                                                     c.kv_heads, c.heads));
  }
  if (c.heads * (c.head_dim + c.latent.value_dim) > kMaxWidth) {
    fields.reject("num_attention_heads", fmt::format("{} heads of {} and {} are wider than any model; expected at most "
                                                     "{} in all",
                                                     c.heads, c.head_dim, c.latent.value_dim, kMaxWidth));
  }
}

void add_latent_projections(ParameterList& p, LayerKind& layer, const DecoderConfig& c) {
  Attention& a = layer.attention;
  const LatentConfig& from = c.latent;
  a.latent.kv_rank = from.kv_rank;
  a.latent.nope_dim = from.nope_dim;
  a.latent.rope_dim = from.rope_dim;
  a.latent.value_dim = from.value_dim;
  const Dimension hidden = hidden_axis(c);
  const Dimension queries = axis(Axis::heads, c.heads, c.head_dim);
  const auto narrow = [](std::int64_t rank) { return axis(Axis::rank, rank); };
  if (from.q_rank == 0) {
    a.q = p.linear("self_attn.q_proj", hidden, queries, false);
  } else {
    a.latent.q_down = p.linear("self_attn.q_a_proj", hidden, narrow(from.q_rank), c.qkv_bias);
    a.latent.q_norm = p.rms_norm("self_attn.q_a_layernorm", narrow(from.q_rank));
    a.latent.q_up = p.linear("self_attn.q_b_proj", narrow(from.q_rank), queries, false);
  }
  Dimension down = narrow(from.kv_rank);
  down.parts.push_back({Axis::rank, from.rope_dim, 1});
  a.latent.kv_down = p.linear("self_attn.kv_a_proj_with_mqa", hidden, down, c.qkv_bias);
  a.latent.kv_norm = p.rms_norm("self_attn.kv_a_layernorm", narrow(from.kv_rank));
  a.latent.kv_up = p.linear("self_attn.kv_b_proj", narrow(from.kv_rank),
                            axis(Axis::heads, c.heads, from.nope_dim + from.value_dim), false);
  a.o = p.linear("self_attn.o_proj", axis(Axis::heads, c.heads, from.value_dim), hidden, c.output_bias);
}

namespace {

Tensor project_queries(Modules& m, const Attention& a, const Tensor& hidden) {
  if (!a.latent.q_down.weight) return call([&](Tensor x) { return m.linear(a.q, x); }, hidden);
  Tensor x = call([&](Tensor h) { return m.linear(a.latent.q_down, h); }, hidden);
  x = call([&](Tensor h) { return m.norm(a.latent.q_norm, h); }, std::move(x));
  return call([&](Tensor h) { return m.linear(a.latent.q_up, h); }, std::move(x));
}

Tensor heads_first(Tensor x_in, std::int64_t head_dim) {
  Tensor x = split_heads(std::move(x_in), head_dim);
  return tensor::transpose(std::move(x), 1, 2);
}

struct Parts {
  Tensor first;
  Tensor second;
};

Parts split_last(const Tensor& x, std::int64_t size) {
  std::vector<Tensor> parts = tensor::split(x, {size, x.size(-1) - size}, -1);
  return {std::move(parts[0]), std::move(parts[1])};
}

}  // namespace

// Names that Python keeps to the end of the function are kept here.
AttentionOutput latent_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                 Tensor mask) {
  const Latent& latent = a.latent;
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  Tensor queries = project_queries(m, a, hidden);
  queries = heads_first(std::move(queries), latent.nope_dim + latent.rope_dim);
  Parts q = split_last(queries, latent.nope_dim);

  const Tensor compressed = call([&](Tensor x) { return m.linear(latent.kv_down, x); }, hidden);
  Parts k = split_last(compressed, latent.kv_rank);
  {
    Tensor expanded = call([&](Tensor x) { return m.norm(latent.kv_norm, x); }, k.first);
    expanded = call([&](Tensor x) { return m.linear(latent.kv_up, x); }, std::move(expanded));
    k.first = heads_first(std::move(expanded), latent.nope_dim + latent.value_dim);
  }
  const Parts kv = split_last(k.first, latent.nope_dim);
  k.first = kv.first;
  k.second = tensor::view(k.second, {batch, 1, seq, latent.rope_dim});
  m.apply_rotary(q.second, k.second, rotary);
  k.second = tensor::expand(k.second, {batch, a.heads, seq, latent.rope_dim});
  const Tensor query = tensor::cat({q.first, q.second}, -1);
  Tensor key = tensor::cat({k.first, k.second}, -1);
  Tensor value = kv.second;
  m.extend_past(key, value);
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * latent.value_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

}  // namespace ullage::model
