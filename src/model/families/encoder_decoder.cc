#include "model/families/encoder_decoder.h"

#include "model/config_fields.h"

namespace ullage::model {
namespace {

Attention paired_attention(ParameterList& p, const std::string& name, const PairedLayers& c, std::int64_t heads,
                           bool causal) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension inner = axis(Axis::heads, heads, c.hidden / heads);
  Attention a;
  a.heads = heads;
  a.kv_heads = heads;
  a.head_dim = c.hidden / heads;
  a.dropout = c.attention_dropout;
  a.softmax_in_fp32 = false;
  a.plain_softmax = true;
  a.groups_keys = false;
  a.causal = causal;
  a.k = p.linear(name + ".k_proj", hidden, inner, c.key_bias);
  a.v = p.linear(name + ".v_proj", hidden, inner, true);
  a.q = p.linear(name + ".q_proj", hidden, inner, true);
  a.o = p.linear(name + ".out_proj", inner, hidden, true);
  return a;
}

}  // namespace

LayerKind paired_layer(const PairedLayers& c, std::int64_t heads, std::int64_t intermediate, bool decodes) {
  LayerKind kind;
  kind.name = decodes ? "decoder" : "encoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension ffn = axis(Axis::ffn, intermediate);
  kind.attention = paired_attention(p, "self_attn", c, heads, decodes);
  (c.norms_first ? kind.input_norm : kind.post_attention_norm) = p.layer_norm("self_attn_layer_norm", hidden);
  if (decodes) {
    kind.cross_attention = paired_attention(p, "encoder_attn", c, heads, false);
    kind.cross_norm = p.layer_norm("encoder_attn_layer_norm", hidden);
  }
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.inner_dropout = c.activation_dropout;
  kind.mlp.up = p.linear("fc1", hidden, ffn, true);
  kind.mlp.down = p.linear("fc2", ffn, hidden, true);
  (c.norms_first ? kind.post_attention_norm : kind.post_feedforward_norm) = p.layer_norm("final_layer_norm", hidden);
  kind.residual_dropout = c.dropout;
  return kind;
}

Tensor token_loss(Modules& m, const Tensor& logits, const Tensor& labels) {
  Tensor rows = tensor::view(logits, {-1, logits.size(-1)});
  Tensor targets = tensor::view(labels, {-1});
  return m.classification_loss(std::move(rows), std::move(targets));
}

// Labels that are to be ignored become padding in place.
Tensor shift_right(Modules& m, const Tensor& labels) {
  tensor::Context& context = m.context();
  const tensor::Restore<memory::Component> component(context.component, memory::Component::inputs);
  const tensor::Scope named(context, context.intern("shift_right"));
  Tensor shifted = tensor::empty(context, tensor::Op::zeros, labels.sizes(), DType::i64);
  tensor::empty(context, tensor::Op::clone, {labels.size(0), labels.size(1) - 1}, DType::i64);
  tensor::empty(context, tensor::Op::compare, labels.sizes(), DType::boolean);
  return shifted;
}

}  // namespace ullage::model
