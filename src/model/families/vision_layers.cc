#include "model/families/vision_layers.h"

#include <fmt/core.h>

namespace ullage::model {

std::int64_t read_side(Fields& fields, std::string_view key, std::int64_t fallback) {
  const Json* value = fields.config().find(key);
  if (value == nullptr || !value->is_array()) return fields.optional_integer(key, fallback, kMaxImagePixels);
  const bool square = value->size() == 2 && (*value)[0].is_number_integer() && (*value)[0] == (*value)[1];
  const std::int64_t side = square ? (*value)[0].get<std::int64_t>() : 0;
  if (side >= 1 && side <= kMaxImagePixels) return side;
  fields.reject(key, "only squares are modelled; give one number of pixels, or the same twice");
  return fallback;
}

void read_image_fields(Fields& fields, VisionConfig& c, std::int64_t patch_size) {
  c.image_size = read_side(fields, "image_size", 224);
  c.patch_size = read_side(fields, "patch_size", patch_size);
  c.channels = fields.integer("num_channels", 3, kMaxWidth);
  if (c.patch_size <= c.image_size) return;
  fields.reject("patch_size", fmt::format("{} pixels do not fit into images of {}; make one of them fit", c.patch_size,
                                          c.image_size));
}

std::int64_t read_classes(Fields& fields) {
  const Json* labels = fields.config().find("id2label");
  const bool listed = labels != nullptr && labels->is_object() && !labels->empty();
  const std::string_view key = listed ? "id2label" : "num_labels";
  const std::int64_t classes =
      listed ? static_cast<std::int64_t>(labels->size()) : fields.optional_integer(key, 2, kMaxVocab);
  if (classes == 1) fields.reject(key, "a single label makes a regression, which is not modelled; give at least 2");
  return classes;
}

Conv2d patch_convolution(ParameterList& p, const std::string& name, const VisionConfig& c, bool bias) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension side = axis(Axis::kernel, c.patch_size);
  Conv2d conv;
  conv.weight = p.add(name + ".weight", {hidden, axis(Axis::channels, c.channels), side, side});
  if (bias) conv.bias = p.add(name + ".bias", {hidden});
  conv.kernel = c.patch_size;
  conv.stride = c.patch_size;
  return conv;
}

Attention vision_attention(const VisionConfig& c) {
  Attention a;
  a.heads = c.heads;
  a.kv_heads = c.heads;
  a.head_dim = c.hidden / c.heads;
  a.dropout = c.attention_dropout;
  a.groups_keys = false;
  a.causal = false;
  return a;
}

Tensor as_sequence(Tensor patches_in) {
  Tensor patches = std::move(patches_in);
  const std::int64_t batch = patches.size(0);
  const std::int64_t hidden = patches.size(1);
  patches = tensor::view(std::move(patches), {batch, hidden, -1});
  return tensor::transpose(std::move(patches), 1, 2);
}

namespace {

AttentionOutput attention(Modules& m, const Attention& a, HeadSplit split, Tensor hidden) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto heads_first = [&](Tensor x) {
    x = tensor::view(std::move(x), {batch, seq, -1, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  const auto project = [&](const Linear& linear) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    return split == HeadSplit::at_once ? heads_first(std::move(x)) : x;
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  if (split == HeadSplit::at_the_end) {
    query = heads_first(std::move(query));
    key = heads_first(std::move(key));
    value = heads_first(std::move(value));
  }
  AttentionOutput attended = m.attention(a, query, key, value, {});
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

// The probabilities stay bound to the end.
Tensor layer_forward(Modules& m, const LayerKind& layer, HeadSplit split, Tensor hidden_in) {
  Tensor hidden = std::move(hidden_in);
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, split, x); }, hidden);
  hidden = std::move(attended.output);
  hidden = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = call([&](Tensor x) { return m.dropout(layer.residual_dropout, x); }, hidden);
  return tensor::add(residual, hidden);
}

}  // namespace

Tensor run_vision_layers(Modules& m, const Architecture& arch, std::int64_t count, HeadSplit split, Tensor hidden_in,
                         std::vector<Tensor>* kept) {
  Tensor hidden = std::move(hidden_in);
  if (kept != nullptr) kept->push_back(hidden);
  for (std::int64_t i = 0; i < count; ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i, [&m, &kind, split](Tensor x, Tensor) { return layer_forward(m, kind, split, std::move(x)); }, hidden);
    if (kept != nullptr) kept->push_back(hidden);
  }
  return hidden;
}

}  // namespace ullage::model
