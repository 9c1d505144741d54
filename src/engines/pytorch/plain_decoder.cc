#include "engines/pytorch/plain_decoder.h"

#include <string>

#include "model/config_fields.h"

namespace ullage::engines::pytorch {

using model::Architecture;
using model::Axis;
using model::axis;
using model::Dimension;
using model::LayerKind;

bool is_plain_decoder(const Architecture& from) {
  if (from.input != model::InputKind::tokens || from.encoder_layers > 0 || from.kinds.size() != 1) return false;
  const LayerKind& kind = from.kinds[0];
  const model::Attention& a = kind.attention;
  const bool plain_attention = a.q.weight && !a.q_norm.weight && !a.sinks && !a.window && !a.softcaps && a.rotates;
  const bool rms = kind.input_norm.kind == model::NormKind::rms && from.final_norm.kind == model::NormKind::rms;
  const bool no_bias = !a.o.bias && !kind.mlp.up.bias;
  const bool gated = no_bias && kind.mlp.gated && kind.mlp.gate.weight && kind.mixture.experts.count == 0;
  return plain_attention && rms && gated && !kind.parallel && kind.post_attention_norm.weight && !kind.norm_after &&
         !kind.feedforward_norm.weight && from.rotary.dim == a.head_dim && !from.positions.weight &&
         from.logits == model::LogitForm::plain && !from.multiplies_embeddings && from.embedding.scale < 0;
}

LayerKind renamed_layer(const Architecture& from, const LayerNames& names) {
  const LayerKind& kind = from.kinds[0];
  LayerKind out;
  out.name = kind.name;
  model::ParameterList p(out.parameters, true);
  const model::Attention& a = kind.attention;
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  const Dimension heads = axis(Axis::heads, a.heads, a.head_dim);
  const Dimension keys = axis(Axis::kv_heads, a.kv_heads, a.head_dim);
  const Dimension ffn = kind.parameters[static_cast<std::size_t>(kind.mlp.up.weight.index)].dims[0];
  const bool bias = static_cast<bool>(a.q.bias);
  out.attention.heads = a.heads;
  out.attention.kv_heads = a.kv_heads;
  out.attention.head_dim = a.head_dim;
  out.attention.q = p.linear(std::string(names.q), hidden, heads, bias);
  out.attention.k = p.linear(std::string(names.k), hidden, keys, bias);
  out.attention.v = p.linear(std::string(names.v), hidden, keys, bias);
  out.attention.o = p.linear(std::string(names.o), heads, hidden, false);
  out.mlp.activation = kind.mlp.activation;
  out.mlp.gate = p.linear(std::string(names.gate), hidden, ffn, false);
  out.mlp.down = p.linear(std::string(names.down), ffn, hidden, false);
  out.mlp.up = p.linear(std::string(names.up), hidden, ffn, false);
  out.input_norm = p.rms_norm(std::string(names.input_norm), hidden);
  out.post_attention_norm = p.rms_norm(std::string(names.post_attention_norm), hidden);
  return out;
}

}  // namespace ullage::engines::pytorch
