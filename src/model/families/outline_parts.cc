#include "model/families/outline_parts.h"

#include <fmt/core.h>

namespace ullage::model {
namespace {

std::string join(const std::string& at, std::string_view name) { return fmt::format("{}{}", at, name); }

Dimension channels(std::int64_t size) { return axis(Axis::channels, size); }

ParameterRef add_convolution(ParameterList& p, const std::string& name, std::int64_t out, std::int64_t kernel,
                             bool bias) {
  const ParameterRef weight =
      p.add(name + ".weight", {channels(out), axis(Axis::kernel, 1), axis(Axis::kernel, kernel)});
  if (bias) p.add(name + ".bias", {channels(out)});
  return weight;
}

}  // namespace

Dimension width(std::int64_t size) { return axis(Axis::hidden, size); }
Dimension narrow(std::int64_t size) { return axis(Axis::rank, size); }
Dimension ffn_width(std::int64_t size) { return axis(Axis::ffn, size); }
Dimension head_width(std::int64_t heads, std::int64_t dim) { return axis(Axis::heads, heads, dim); }
Dimension kv_width(std::int64_t heads, std::int64_t dim) { return axis(Axis::kv_heads, heads, dim); }

Dimension joined(std::vector<Dimension> parts) {
  Dimension out;
  for (const Dimension& part : parts) out.parts.insert(out.parts.end(), part.parts.begin(), part.parts.end());
  return out;
}

// --- attention -------------------------------------------------------------------------------------------------------

Projections projections_of(const DecoderConfig& c) {
  Projections out;
  out.hidden = c.hidden;
  out.heads = c.heads;
  out.kv_heads = c.kv_heads;
  out.head_dim = c.head_dim;
  out.q_bias = out.k_bias = out.v_bias = c.qkv_bias;
  out.o_bias = c.output_bias;
  out.norms = c.qk_norm;
  return out;
}

Projections square_projections(std::int64_t hidden, std::int64_t heads, bool bias) {
  Projections out;
  out.hidden = hidden;
  out.heads = out.kv_heads = heads;
  out.head_dim = hidden / heads;
  out.q_bias = out.k_bias = out.v_bias = out.o_bias = bias;
  return out;
}

void add_attention(ParameterList& p, Attention& a, const std::string& at, const Projections& from,
                   const ProjectionNames& names) {
  const std::int64_t value_dim = from.value_dim == 0 ? from.head_dim : from.value_dim;
  const Dimension hidden = width(from.hidden);
  const Dimension queries = head_width(from.heads, from.head_dim);
  const Dimension asked = from.gated ? joined({queries, queries}) : queries;
  a.heads = from.heads;
  a.kv_heads = from.kv_heads;
  a.head_dim = from.head_dim;
  if (value_dim != from.head_dim) a.value_dim = value_dim;
  a.q = p.linear(join(at, names.q), hidden, asked, from.q_bias);
  a.k = p.linear(join(at, names.k), hidden, kv_width(from.kv_heads, from.head_dim), from.k_bias);
  a.v = p.linear(join(at, names.v), hidden, kv_width(from.kv_heads, value_dim), from.v_bias);
  a.o = p.linear(join(at, names.o), head_width(from.heads, value_dim), hidden, from.o_bias);
  if (!from.norms) return;
  a.q_norm = p.rms_norm(join(at, names.q_norm), width(from.head_dim));
  a.k_norm = p.rms_norm(join(at, names.k_norm), width(from.head_dim));
}

void add_indexer(ParameterList& p, Attention& a, const std::string& at, std::int64_t hidden, std::int64_t q_rank,
                 std::int64_t heads, std::int64_t head_dim) {
  p.linear(join(at, "wq_b"), narrow(q_rank), head_width(heads, head_dim), false);
  p.linear(join(at, "wk"), width(hidden), width(head_dim), false);
  p.layer_norm(join(at, "k_norm"), width(head_dim));
  p.linear(join(at, "weights_proj"), width(hidden), head_width(heads, 1), false);
  a.indexer_dim = head_dim;
}

// --- feed-forward ----------------------------------------------------------------------------------------------------

Mlp add_gated(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn, bool bias,
              const GatedNames& names) {
  Mlp mlp;
  mlp.gate = p.linear(join(at, names.gate), width(hidden), ffn_width(ffn), bias);
  mlp.up = p.linear(join(at, names.up), width(hidden), ffn_width(ffn), bias);
  mlp.down = p.linear(join(at, names.down), ffn_width(ffn), width(hidden), bias);
  return mlp;
}

Mlp add_gate_up(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn) {
  Mlp mlp;
  mlp.up = p.linear(join(at, "gate_up_proj"), width(hidden), joined({ffn_width(ffn), ffn_width(ffn)}), false);
  mlp.down = p.linear(join(at, "down_proj"), ffn_width(ffn), width(hidden), false);
  return mlp;
}

Mlp add_plain(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn, bool bias,
              std::string_view up, std::string_view down) {
  Mlp mlp;
  mlp.gated = false;
  mlp.up = p.linear(join(at, up), width(hidden), ffn_width(ffn), bias);
  mlp.down = p.linear(join(at, down), ffn_width(ffn), width(hidden), bias);
  return mlp;
}

void add_routed(ParameterList& p, LayerKind& layer, const std::string& at, std::int64_t hidden,
                const MixtureConfig& from, bool gated) {
  Experts& experts = layer.mixture.experts;
  experts.count = from.experts;
  layer.mixture.top_k = from.top_k;
  const Dimension count = axis(Axis::expert, from.experts);
  const Dimension ffn = ffn_width(from.intermediate);
  experts.gate_up = gated ? p.add(join(at, "gate_up_proj"), {count, joined({ffn, ffn}), width(hidden)})
                          : p.add(join(at, "up_proj"), {count, ffn, width(hidden)});
  experts.down = p.add(join(at, "down_proj"), {count, width(hidden), ffn});
}

// --- layers without keys and values ----------------------------------------------------------------------------------

void add_mamba(ParameterList& p, LayerKind& layer, const std::string& at, const MambaShape& from) {
  const Dimension inner = channels(from.inner);
  p.add(join(at, "A_log"), {inner, width(from.state)});
  p.add(join(at, "D"), {inner});
  add_convolution(p, join(at, "conv1d"), from.inner, from.kernel, from.conv_bias);
  p.linear(join(at, "in_proj"), width(from.hidden), joined({inner, inner}), from.bias);
  p.linear(join(at, "x_proj"), inner, joined({narrow(from.time_rank), narrow(from.state), narrow(from.state)}), false);
  p.linear(join(at, "dt_proj"), narrow(from.time_rank), inner, true);
  p.linear(join(at, "out_proj"), inner, width(from.hidden), from.bias);
  layer.recurrent = Recurrent{.kind = RecurrentKind::mamba,
                              .heads = from.inner,
                              .rows = 1,
                              .columns = from.state,
                              .conv_channels = from.inner,
                              .conv_kernel = from.kernel};
  if (!from.inner_norms) return;
  p.rms_norm(join(at, "dt_layernorm"), narrow(from.time_rank));
  p.rms_norm(join(at, "b_layernorm"), narrow(from.state));
  p.rms_norm(join(at, "c_layernorm"), narrow(from.state));
}

void add_mamba2(ParameterList& p, LayerKind& layer, const std::string& at, const MambaShape& from) {
  const Dimension heads = axis(Axis::heads, from.heads);
  const Dimension inner = channels(from.inner);
  const std::int64_t convolved = from.inner + 2 * from.groups * from.state;
  p.add(join(at, "dt_bias"), {heads});
  p.add(join(at, "A_log"), {heads});
  p.add(join(at, "D"), {heads});
  add_convolution(p, join(at, "conv1d"), convolved, from.kernel, from.conv_bias);
  p.linear(join(at, "in_proj"), width(from.hidden), joined({inner, channels(convolved), heads}), from.bias);
  if (from.norm) p.rms_norm(join(at, "norm"), inner);
  p.linear(join(at, "out_proj"), inner, width(from.hidden), from.out_bias.value_or(from.bias));
  layer.recurrent = Recurrent{.kind = RecurrentKind::mamba2,
                              .heads = from.heads,
                              .rows = from.inner / from.heads,
                              .columns = from.state,
                              .groups = from.groups,
                              .conv_channels = convolved,
                              .conv_kernel = from.kernel};
}

void add_gated_delta(ParameterList& p, LayerKind& layer, const std::string& at, const DeltaShape& from) {
  const Dimension heads = axis(Axis::heads, from.value_heads);
  const Dimension keys = kv_width(from.key_heads, from.key_dim);
  const Dimension values = head_width(from.value_heads, from.value_dim);
  const Dimension convolved = joined({keys, keys, values});
  p.add(join(at, "dt_bias"), {heads});
  p.add(join(at, "A_log"), {heads});
  add_convolution(p, join(at, "conv1d"), convolved.size(), from.kernel, false);
  if (from.joined) {
    p.linear(join(at, "in_proj_qkvz"), width(from.hidden), joined({convolved, values}), false);
    p.linear(join(at, "in_proj_ba"), width(from.hidden), joined({heads, heads}), false);
  }
  p.rms_norm(join(at, "norm"), width(from.value_dim));
  p.linear(join(at, "out_proj"), values, width(from.hidden), false);
  if (!from.joined) {
    p.linear(join(at, "in_proj_qkv"), width(from.hidden), convolved, false);
    p.linear(join(at, "in_proj_z"), width(from.hidden), values, false);
    p.linear(join(at, "in_proj_b"), width(from.hidden), heads, false);
    p.linear(join(at, "in_proj_a"), width(from.hidden), heads, false);
  }
  layer.recurrent = Recurrent{.kind = RecurrentKind::gated_delta_net,
                              .heads = from.value_heads,
                              .rows = from.key_dim,
                              .columns = from.value_dim,
                              .groups = from.key_heads,
                              .conv_channels = convolved.size(),
                              .conv_kernel = from.kernel};
}

// --- towers ----------------------------------------------------------------------------------------------------------

void add_block(ParameterList& p, const std::string& at, const Block& from, const BlockNames& names) {
  Projections square = square_projections(from.hidden, from.heads, from.bias);
  square.k_bias = from.bias && from.k_bias;
  Attention unused;
  p.layer_norm(join(at, names.norm1), width(from.hidden));
  add_attention(p, unused, join(at, names.attention), square, names.projections);
  p.layer_norm(join(at, names.norm2), width(from.hidden));
  add_plain(p, join(at, names.mlp), from.hidden, from.ffn, true, names.up, names.down);
}

void add_patches(ParameterList& p, const std::string& name, std::int64_t hidden, std::int64_t channel_count,
                 std::int64_t patch, std::int64_t frames, bool bias) {
  const Dimension side = axis(Axis::kernel, patch);
  std::vector<Dimension> dims{width(hidden), channels(channel_count)};
  if (frames > 0) dims.push_back(axis(Axis::kernel, frames));
  dims.push_back(side);
  dims.push_back(side);
  p.add(name + ".weight", std::move(dims));
  if (bias) p.add(name + ".bias", {width(hidden)});
}

}  // namespace ullage::model
