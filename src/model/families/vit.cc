// ViT (transformers: models/vit/modeling_vit.py).
#include "model/families/vit.h"

#include "model/families/vision_layers.h"

namespace ullage::model {
namespace {

struct VitConfig : VisionConfig {
  bool qkv_bias = true;
  std::int64_t classes = 0;
};

VitConfig read(Fields& fields) {
  VitConfig c;
  c.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 12, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 12, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 3072, kMaxWidth);
  c.activation = fields.activation("hidden_act", "gelu");
  c.dropout = fields.probability("hidden_dropout_prob", 0);
  c.attention_dropout = fields.probability("attention_probs_dropout_prob", 0);
  read_image_fields(fields, c, 16);
  c.qkv_bias = fields.boolean("qkv_bias", true);
  c.classes = read_classes(fields);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  return c;
}

LayerKind layer_kind(const VitConfig& c) {
  LayerKind kind;
  kind.name = "encoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention = vision_attention(c);
  kind.attention.q = p.linear("attention.q_proj", hidden, heads, c.qkv_bias);
  kind.attention.k = p.linear("attention.k_proj", hidden, heads, c.qkv_bias);
  kind.attention.v = p.linear("attention.v_proj", hidden, heads, c.qkv_bias);
  kind.attention.o = p.linear("attention.o_proj", heads, hidden, true);
  kind.input_norm = p.layer_norm("layernorm_before", hidden);
  kind.post_attention_norm = p.layer_norm("layernorm_after", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.fc1", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.fc2", ffn, hidden, true);
  kind.residual_dropout = c.dropout;
  return kind;
}

Architecture network(const VitConfig& c) {
  Architecture arch;
  arch.family = "vit";
  arch.hidden = c.hidden;
  arch.input = InputKind::images;
  arch.image.classes = c.classes;
  arch.image.size = c.image_size;
  arch.image.channels = c.channels;
  arch.layer_prefix = "vit.layers.";
  arch.embedding_dropout = c.dropout;
  const Dimension one = axis(Axis::position, 1);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  VisionTower& tower = arch.tower;
  tower.class_token = p.add("vit.embeddings.cls_token", {one, one, hidden});
  tower.position_table =
      p.add("vit.embeddings.position_embeddings", {one, axis(Axis::position, c.patches() + 1), hidden});
  tower.patches = patch_convolution(p, "vit.embeddings.patch_embeddings.projection", c, true);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(layer_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  tower.post_norm = p.layer_norm("vit.layernorm", hidden);
  arch.head = p.linear("classifier", hidden, axis(Axis::classes, c.classes), true);
  return arch;
}

Tensor embed(Modules& m, const Architecture& arch, Tensor images) {
  const VisionTower& tower = arch.tower;
  Tensor embeddings = call(
      [&](Tensor x) {
        Tensor patches = call([&](Tensor pixels) { return m.conv2d(tower.patches, pixels); }, x);
        return as_sequence(std::move(patches));
      },
      std::move(images));
  m.mark_input(embeddings);
  const Tensor class_tokens = tensor::expand(m.weight(tower.class_token), {embeddings.size(0), 1, embeddings.size(2)});
  embeddings = tensor::cat({class_tokens, embeddings}, 1);
  const Tensor table = m.weight(tower.position_table);
  embeddings = tensor::add(embeddings, table);
  return call([&](Tensor x) { return m.dropout(arch.embedding_dropout, x); }, embeddings);
}

// The embeddings stay bound to the end.
Tensor body(Modules& m, const Architecture& arch, Tensor images) {
  const Tensor embedded = call([&](Tensor x) { return embed(m, arch, x); }, std::move(images));
  const Tensor hidden = run_vision_layers(m, arch, arch.layer_count(), HeadSplit::at_once, embedded);
  return call([&](Tensor x) { return m.norm(arch.tower.post_norm, x); }, hidden);
}

}  // namespace

Expected<Architecture> build_vit(const JsonObject& config) {
  Fields fields(config);
  const VitConfig c = read(fields);
  return finish(fields, c).map(network);
}

Output forward_vit(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor sequence = call([&](Tensor x) { return body(m, arch, x); }, batch.inputs);
  Output out;
  const Tensor pooled = tensor::select(sequence, 1, 0);
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, pooled);
  if (!batch.labels) return out;
  Tensor rows = tensor::view(out.logits, {-1, arch.image.classes});
  out.loss = m.classification_loss(std::move(rows), batch.labels);
  return out;
}

}  // namespace ullage::model
