// CLIP's vision tower (transformers: models/clip/modeling_clip.py).
#include "model/families/clip_vision.h"

namespace ullage::model {
namespace {

constexpr std::string_view kVisionKey = "vision_config";
constexpr std::string_view kTower = "vision_model.";

Architecture network(const VisionConfig& c, std::int64_t classes) {
  const std::string prefix(kTower);
  Architecture arch;
  arch.family = "clip_vision_model";
  arch.hidden = c.hidden;
  arch.input = InputKind::images;
  arch.image.classes = classes;
  arch.image.size = c.image_size;
  arch.image.channels = c.channels;
  arch.layer_prefix = prefix + "encoder.layers.";
  add_clip_embeddings(arch, c, prefix);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(clip_vision_layer(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  add_clip_post_norm(arch, c, prefix);
  // What follows this norm is not asked for by a classifier.
  for (const ParameterRef ref : {arch.tower.post_norm.weight, arch.tower.post_norm.bias}) {
    arch.parameters[static_cast<std::size_t>(ref.index)].unused = true;
  }
  ParameterList p(arch.parameters, false);
  arch.head = p.linear("classifier", axis(Axis::hidden, c.hidden), axis(Axis::classes, classes), true);
  return arch;
}

// Position numbers are a buffer.
Tensor embed(Modules& m, const VisionTower& tower, Tensor images) {
  const DType dtype = m.weight(tower.patches.weight).dtype();
  Tensor pixels = tensor::to(std::move(images), dtype);
  Tensor patches = call([&](Tensor x) { return m.conv2d(tower.patches, x); }, std::move(pixels));
  m.mark_input(patches);
  const std::int64_t batch = patches.size(0);
  const std::int64_t hidden = patches.size(1);
  patches = as_sequence(std::move(patches));
  Tensor class_tokens = tensor::expand(m.weight(tower.class_token), {batch, 1, hidden});
  Tensor embeddings = tensor::cat({std::move(class_tokens), patches}, 1);
  Tensor numbers = m.model_buffer(tower.numbers);
  Tensor positions = call([&](Tensor x) { return m.embedding(tower.positions, x); }, std::move(numbers));
  embeddings = tensor::add(embeddings, std::move(positions));
  return embeddings;
}

}  // namespace

VisionConfig read_clip_vision(Fields& fields) {
  VisionConfig c;
  c.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 3072, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 12, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 12, kMaxWidth);
  read_image_fields(fields, c, 32);
  c.activation = fields.activation("hidden_act", "quick_gelu");
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  return c;
}

LayerKind clip_vision_layer(const VisionConfig& c) {
  LayerKind kind;
  kind.name = "encoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension heads = axis(Axis::heads, c.heads, c.hidden / c.heads);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention = vision_attention(c);
  kind.attention.k = p.linear("self_attn.k_proj", hidden, heads, true);
  kind.attention.v = p.linear("self_attn.v_proj", hidden, heads, true);
  kind.attention.q = p.linear("self_attn.q_proj", hidden, heads, true);
  kind.attention.o = p.linear("self_attn.out_proj", heads, hidden, true);
  kind.input_norm = p.layer_norm("layer_norm1", hidden);
  kind.mlp.gated = false;
  kind.mlp.activation = c.activation;
  kind.mlp.up = p.linear("mlp.fc1", hidden, ffn, true);
  kind.mlp.down = p.linear("mlp.fc2", ffn, hidden, true);
  kind.post_attention_norm = p.layer_norm("layer_norm2", hidden);
  return kind;
}

void add_clip_embeddings(Architecture& arch, const VisionConfig& c, const std::string& prefix) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const std::int64_t positions = c.patches() + 1;
  ParameterList p(arch.parameters, false);
  VisionTower& tower = arch.tower;
  tower.class_token = p.add(prefix + "embeddings.class_embedding", {hidden});
  tower.patches = patch_convolution(p, prefix + "embeddings.patch_embedding", c, false);
  tower.positions = p.embedding(prefix + "embeddings.position_embedding", axis(Axis::position, positions), hidden);
  tower.numbers = static_cast<std::int32_t>(arch.buffers.size());
  arch.buffers.push_back({prefix + "embeddings.position_ids", {1, positions}, DType::i64, false, false});
  tower.pre_norm = p.layer_norm(prefix + "pre_layrnorm", hidden);
}

void add_clip_post_norm(Architecture& arch, const VisionConfig& c, const std::string& prefix) {
  ParameterList p(arch.parameters, false);
  arch.tower.post_norm = p.layer_norm(prefix + "post_layernorm", axis(Axis::hidden, c.hidden));
}

ClipVisionOutput clip_vision_tower(Modules& m, const Architecture& arch, std::int64_t layers, Tensor images_in,
                                   std::vector<Tensor>* kept) {
  const Tensor images = std::move(images_in);
  Tensor hidden = call([&](Tensor x) { return embed(m, arch.tower, x); }, images);
  hidden = call([&](Tensor x) { return m.norm(arch.tower.pre_norm, x); }, hidden);
  ClipVisionOutput out;
  out.last = run_vision_layers(m, arch, layers, HeadSplit::at_the_end, hidden, kept);
  out.pooled = tensor::select(out.last, 1, 0);
  out.pooled = call([&](Tensor x) { return m.norm(arch.tower.post_norm, x); }, out.pooled);
  return out;
}

Expected<Architecture> build_clip_vision(const JsonObject& config) {
  Fields fields(config);
  const VisionConfig c = read_clip_vision(fields);
  const std::int64_t classes = read_classes(fields);
  return finish(fields, c).map([classes](const VisionConfig& known) { return network(known, classes); });
}

// The number of classes is the whole's.
Expected<Architecture> build_clip(const JsonObject& config) {
  static const Json kNone = Json::object();
  const Json* nested = config.find(kVisionKey);
  const JsonObject vision(nested == nullptr ? kNone : *nested, config.where(kVisionKey));
  Fields whole(config);
  const std::int64_t classes = read_classes(whole);
  if (whole.error()) return tl::unexpected<Error>(*whole.error());
  Fields fields(vision);
  const VisionConfig c = read_clip_vision(fields);
  return finish(fields, c).map([classes](const VisionConfig& known) {
    Architecture arch = network(known, classes);
    arch.notes.push_back({NoteKind::vision_part_only, "clip"});
    return arch;
  });
}

// The classifier sees the mean of the patches; what the tower gave stays bound beside it.
Output forward_clip_vision(Modules& m, const Architecture& arch, Batch batch) {
  const ClipVisionOutput seen =
      call([&](Tensor x) { return clip_vision_tower(m, arch, arch.layer_count(), x); }, batch.inputs);
  Tensor sequence = seen.last;
  {
    Tensor patches = tensor::slice(sequence, 1, 1, sequence.size(1));
    sequence = tensor::mean_dim(std::move(patches), 1);
  }
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, sequence);
  if (!batch.labels) return out;
  Tensor rows = tensor::view(out.logits, {-1, arch.image.classes});
  out.loss = m.classification_loss(std::move(rows), batch.labels);
  return out;
}

}  // namespace ullage::model
