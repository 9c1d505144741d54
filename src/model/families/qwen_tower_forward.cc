// The way of an image through a tower (transformers: models/qwen2_5_vl/modeling_qwen2_5_vl.py,
// models/qwen3_vl/modeling_qwen3_vl.py, vision_utils.py). What
// the published code works out on the host, such as the order of windows, leaves no trace here.
#include <algorithm>
#include <array>
#include <memory>

#include "model/families/qwen_tower.h"

namespace ullage::model {
namespace {

using tensor::Dims;
using tensor::Op;

// The stretches of the sequence that attention keeps to: their bounds as a tensor, and how long each is.
struct Segments {
  Tensor bounds;
  std::shared_ptr<const std::vector<std::int64_t>> lengths;
};

// get_vision_position_ids: row and column of each patch, [patches, 2], in the order of the tokens.
Tensor patch_positions(tensor::Context& context, const Vision& v, std::int64_t images, std::int64_t side) {
  const std::int64_t patches = side * side;
  const Tensor merge = tensor::empty(context, Op::cast, {1}, DType::i64);
  const Dims by_token{side / v.merge, side / v.merge, v.merge, v.merge};
  const auto spread = [&](Tensor& numbers) {
    numbers = tensor::empty(context, Op::arange, {side}, DType::i64);
    numbers = tensor::empty(context, Op::clone, by_token, DType::i64);
  };
  Tensor rows;
  Tensor columns;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < images; ++i) {
    spread(rows);
    spread(columns);
    const Tensor pairs = tensor::empty(context, Op::cat, {patches, 2}, DType::i64);
    parts.push_back(tensor::empty(context, Op::repeat, {patches, 2}, DType::i64));
  }
  Tensor all = tensor::empty(context, Op::cat, {images * patches, 2}, DType::i64);
  for (Tensor& part : parts) part.reset();
  return all;
}

// get_vision_cu_seqlens: where each image ends.
Segments whole_images(tensor::Context& context, std::int64_t images, std::int64_t side) {
  Segments out;
  out.lengths = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(images), side * side);
  Tensor repeated;
  {
    const Tensor areas = tensor::empty(context, Op::mul, {images}, DType::i64);
    const Tensor frames = tensor::empty(context, Op::repeat, {images}, DType::i64);
    repeated = tensor::empty(context, Op::index, {images}, DType::i64);
  }
  const Tensor ends = tensor::empty(context, Op::cumsum, {images}, DType::i32);
  repeated.reset();
  out.bounds = tensor::empty(context, Op::pad, {images + 1}, DType::i32);
  return out;
}

// get_vision_window_index: the same of windows; empty ones are dropped.
Segments windows_of(tensor::Context& context, const Vision& v, std::int64_t images, std::int64_t side) {
  const Windows of_image = windows_of_image(v, side);
  auto lengths = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t i = 0; i < images; ++i) {
    lengths->insert(lengths->end(), of_image.patches.begin(), of_image.patches.end());
  }
  const Tensor all = tensor::empty(context, Op::cast, {images * of_image.counted + 1}, DType::i32);
  Segments out;
  out.bounds =
      tensor::empty(context, Op::unique_consecutive, {static_cast<std::int64_t>(lengths->size()) + 1}, DType::i32);
  out.lengths = std::move(lengths);
  return out;
}

Tensor embed_patches(Modules& m, const Vision& v, Tensor pixels) {
  const tensor::Scope named(m.context(), m.context().intern("visual.patch_embed"));
  const Tensor weight = m.weight(v.patch_weight);
  Tensor x = tensor::view(std::move(pixels), {-1, v.channels, v.frames, v.patch, v.patch});
  const Tensor bias = v.patch_bias ? m.weight(v.patch_bias) : Tensor{};
  x = tensor::conv3d_whole(x, weight, bias);
  x = tensor::view(std::move(x), {-1, weight.size(0)});
  if (!v.positions.weight) m.mark_input(x);  // transformers finds no input embedding in the towers that have positions
  return x;
}

// Corners of the grid of learned positions around each patch, and how much each of the four counts: [4, patches].
struct Corners {
  Tensor indices;
  Tensor weights;
};

// What a name holds when the next image is looked at.
struct CornerNames {
  Tensor h_grid, w_grid, h_floor, w_floor, h_ceil, w_ceil, h_frac, w_frac, h_floor_offset, h_ceil_offset;
  Tensor h_idx, w_idx, reorder;
  std::array<Tensor, 4> indices, weights;
};

void rebind(std::array<Tensor, 4>& names, std::array<Tensor, 4> made) {
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = std::move(made[i]);
}

// Of one image, in rows of patches, and how they are put in the order of tokens.
void corners_of_image(tensor::Context& context, CornerNames& n, std::int64_t side, std::int64_t merge) {
  const auto line = [&](Op op, DType dtype) { return tensor::empty(context, op, {side}, dtype); };
  const auto plane = [&](Op op, DType dtype) { return tensor::empty(context, op, {side, side}, dtype); };
  const auto bounded = [&] {
    const Tensor next = line(Op::add, DType::i32);
    return line(Op::clamp, DType::i32);
  };
  n.h_grid = line(Op::arange, DType::f32);
  n.w_grid = line(Op::arange, DType::f32);
  n.h_floor = line(Op::cast, DType::i32);
  n.w_floor = line(Op::cast, DType::i32);
  n.h_ceil = bounded();
  n.w_ceil = bounded();
  n.h_frac = line(Op::sub, DType::f32);
  n.w_frac = line(Op::sub, DType::f32);
  n.h_floor_offset = line(Op::mul, DType::i32);
  n.h_ceil_offset = line(Op::mul, DType::i32);
  std::array<Tensor, 4> made;
  for (Tensor& corner : made) corner = plane(Op::add, DType::i32);
  rebind(n.indices, std::move(made));
  // The rest of a whole is taken of both directions, of one, of the other and of none.
  constexpr std::array<int, 4> kRests{2, 1, 1, 0};
  std::array<Tensor, 4> weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::array<Tensor, 2> rests;
    for (int k = 0; k < kRests[i]; ++k) rests[static_cast<std::size_t>(k)] = line(Op::sub, DType::f32);
    weights[i] = plane(Op::mul, DType::f32);
  }
  rebind(n.weights, std::move(weights));
  n.h_idx = line(Op::arange, DType::i64);
  n.w_idx = line(Op::arange, DType::i64);
  const Dims by_token{side / merge, merge, side / merge, merge};
  Tensor order;
  {
    const Tensor rows = line(Op::mul, DType::i64);
    order = tensor::empty(context, Op::add, by_token, DType::i64);
  }
  order = tensor::empty(context, Op::clone, by_token, DType::i64);
  n.reorder = tensor::empty(context, Op::repeat, {side * side}, DType::i64);
}

// get_vision_bilinear_indices_and_weights.
Corners corners_of(tensor::Context& context, const Vision& v, std::int64_t images, std::int64_t side) {
  const tensor::Scope named(context, context.intern("visual.pos_embed"));
  const std::int64_t patches = side * side;
  CornerNames names;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < images; ++i) {
    corners_of_image(context, names, side, v.merge);
    for (std::size_t corner = 0; corner < names.indices.size(); ++corner) {
      parts.push_back(tensor::empty(context, Op::index, {patches}, DType::i32));
      parts.push_back(tensor::empty(context, Op::index, {patches}, DType::f32));
    }
  }
  const auto stacked = [&](DType dtype) {
    std::array<Tensor, 4> joined;
    for (Tensor& corner : joined) corner = tensor::empty(context, Op::cat, {images * patches}, dtype);
    return tensor::empty(context, Op::cat, {4, images * patches}, dtype);
  };
  Corners out;
  out.indices = stacked(DType::i32);
  out.weights = stacked(DType::f32);
  for (Tensor& part : parts) part.reset();
  return out;
}

// Positions of the patches between the learned ones.
Tensor learned_positions(Modules& m, const Vision& v, const Corners& corners) {
  Tensor looked_up = call([&](Tensor ids) { return m.embedding(v.positions, ids); }, corners.indices);
  Tensor weights = tensor::unsqueeze(corners.weights, -1);
  Tensor weighted = tensor::mul(std::move(looked_up), std::move(weights));
  return tensor::sum_dim(std::move(weighted), 0, false);
}

// Tokens in the order of the windows, whose patches lie one behind the other.
Tensor reorder(Tensor x_in, std::int64_t unit) {
  Tensor x = std::move(x_in);
  const std::int64_t patches = x.size(0);
  x = tensor::reshape(std::move(x), {patches / unit, unit, -1});
  x = tensor::index_rows_by_host(x, patches / unit);
  return tensor::reshape(std::move(x), {patches, -1});
}

// Softmax within each segment. All that is bound stays so to the end.
Tensor vision_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                        const Segments& segments) {
  const std::int64_t patches = hidden.size(0);
  Tensor fused = call([&](Tensor x) { return m.linear(a.qkv, x); }, hidden);
  fused = tensor::reshape(std::move(fused), {patches, 3, a.heads, -1});
  fused = tensor::transpose(std::move(fused), 0, 1);
  std::vector<Tensor> parts = tensor::unbind(std::move(fused), 0);
  Tensor query = std::move(parts[0]);
  Tensor key = std::move(parts[1]);
  Tensor value = std::move(parts[2]);
  m.apply_rotary(query, key, rotary);
  for (Tensor* x : {&query, &key, &value}) {
    *x = tensor::transpose(std::move(*x), 0, 1);
    *x = tensor::unsqueeze(std::move(*x), 0);
  }
  const Tensor lengths = tensor::empty(m.context(), Op::sub, {segments.bounds.size(0) - 1}, DType::i32);
  std::vector<Tensor> queries = tensor::split(query, *segments.lengths, 2);
  std::vector<Tensor> keys = tensor::split(key, *segments.lengths, 2);
  std::vector<Tensor> values = tensor::split(value, *segments.lengths, 2);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    AttentionOutput attended = m.attention(a, queries[i], keys[i], values[i], {});
    outputs.push_back(std::move(attended.output));
  }
  Tensor out = tensor::cat(outputs, 1);
  out = tensor::reshape(std::move(out), {patches, -1});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  for (std::vector<Tensor>* list : {&queries, &keys, &values, &outputs}) {
    for (Tensor& part : *list) part.reset();
  }
  return out;
}

Tensor vision_block(Modules& m, const LayerKind& kind, Tensor hidden, const RotaryTables& rotary,
                    const Segments& segments) {
  {
    Tensor normed = call([&](Tensor x) { return m.norm(kind.input_norm, x); }, hidden);
    Tensor attended =
        call([&](Tensor x) { return vision_attention(m, kind.attention, x, rotary, segments); }, std::move(normed));
    hidden = tensor::add(hidden, std::move(attended));
  }
  Tensor normed = call([&](Tensor x) { return m.norm(kind.post_attention_norm, x); }, hidden);
  Tensor fed = call([&](Tensor x) { return m.mlp(kind.mlp, x); }, std::move(normed));
  return tensor::add(hidden, std::move(fed));
}

Tensor merge_patches(Modules& m, const PatchMerger& merger, Tensor x, std::int64_t unit) {
  const std::int64_t width = x.size(1) * unit;
  if (merger.norms_merged) x = tensor::view(std::move(x), {-1, width});
  Tensor normed = call([&](Tensor h) { return m.norm(merger.norm, h); }, x);
  normed = tensor::view(std::move(normed), {-1, width});
  Tensor inner = call([&](Tensor h) { return m.linear(merger.up, h); }, normed);
  inner = call([&](Tensor h) { return m.activation(Activation::gelu, h); }, std::move(inner));
  return call([&](Tensor h) { return m.linear(merger.down, h); }, std::move(inner));
}

}  // namespace

TowerOutput forward_qwen_tower(Modules& m, const Architecture& arch, Tensor pixels, const Images& images) {
  const Vision& v = arch.vision;
  tensor::Context& context = m.context();
  const std::int64_t side = images.patches_of_side;
  const std::int64_t count = images.grids.size(0);
  const std::int64_t unit = v.merge * v.merge;
  const std::int64_t patches = count * side * side;
  const Corners corners = v.positions.weight ? corners_of(context, v, count, side) : Corners{};
  const Tensor positions = patch_positions(context, v, count, side);
  const Segments whole = whole_images(context, count, side);
  const Segments windows = v.window > 0 ? windows_of(context, v, count, side) : Segments{};

  Tensor hidden = call([&](Tensor x) { return embed_patches(m, v, x); }, pixels);
  Tensor learned;
  if (v.positions.weight) {
    learned = learned_positions(m, v, corners);
    Tensor cast = tensor::to(learned, hidden.dtype());
    hidden = tensor::add(hidden, std::move(cast));
  }
  if (v.window > 0) hidden = reorder(hidden, unit);
  const Tensor frequencies = m.model_buffer(static_cast<std::int32_t>(v.rotary_buffer));
  const std::int64_t turned = 2 * frequencies.size(0);
  Tensor angles = tensor::empty(context, Op::mul, {patches, turned}, DType::f32);
  if (v.window > 0) angles = tensor::empty(context, Op::index, {patches, turned}, DType::f32);
  const Tensor both = tensor::empty(context, Op::cat, {patches, 2 * turned}, DType::f32);
  RotaryTables rotary;
  rotary.form = RotaryForm::wide;
  rotary.cos = tensor::cos(both);
  rotary.sin = tensor::sin(both);

  TowerOutput out;
  for (std::int64_t i = 0; i < arch.encoder_layers; ++i) {
    const LayerKind& kind = arch.kind_of(i);
    const Segments& segments = kind.attention.window ? windows : whole;
    hidden = m.layer(
        i,
        [&m, &kind, rotary, segments](Tensor x, Tensor) {
          return vision_block(m, kind, std::move(x), rotary, segments);
        },
        hidden);
    const auto deep = std::find(v.deep_layers.begin(), v.deep_layers.end(), i);
    if (deep == v.deep_layers.end()) continue;
    const PatchMerger& merger = v.deep_mergers[static_cast<std::size_t>(deep - v.deep_layers.begin())];
    out.deep.push_back(call([&](Tensor x) { return merge_patches(m, merger, x, unit); }, hidden));
  }
  out.last = hidden;
  out.merged = call([&](Tensor x) { return merge_patches(m, v.merger, x, unit); }, hidden);
  if (v.window > 0) out.merged = tensor::index_rows_by_host(out.merged, patches / unit);
  return out;
}

}  // namespace ullage::model
