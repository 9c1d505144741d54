// Images in Qwen's vision-language models (transformers: models/qwen2_5_vl/modeling_qwen2_5_vl.py and its kin).
#include "model/families/qwen_images.h"

namespace ullage::model {
namespace {

using tensor::Op;

// get_vision_position_ids of an image of `side` x `side` tokens: [3, tokens].
Tensor image_positions(tensor::Context& context, std::int64_t side) {
  const std::int64_t tokens = side * side;
  const auto numbers = [&](std::int64_t count, Op op) {
    const Tensor from_zero = tensor::empty(context, Op::arange, {count}, DType::i64);
    return tensor::empty(context, op, {count}, DType::i64);
  };
  Tensor time = numbers(1, Op::mul);
  Tensor columns = numbers(side, Op::add);
  Tensor rows = numbers(side, Op::add);
  columns = tensor::empty(context, Op::repeat, {tokens}, DType::i64);
  {
    const Tensor each = tensor::empty(context, Op::clone, {tokens}, DType::i64);
    rows = tensor::empty(context, Op::repeat, {tokens}, DType::i64);
  }
  {
    const Tensor each = tensor::empty(context, Op::clone, {tokens}, DType::i64);
    time = tensor::empty(context, Op::add, {tokens}, DType::i64);
  }
  return tensor::empty(context, Op::cat, {3, tokens}, DType::i64);
}

Tensor text_positions(tensor::Context& context, std::int64_t tokens) {
  const Tensor from_zero = tensor::empty(context, Op::arange, {tokens}, DType::i64);
  return tensor::empty(context, Op::add, {3, tokens}, DType::i64);
}

}  // namespace

ImageFeatures qwen_image_features(Modules& m, const Architecture& arch, const Images& images) {
  tensor::Context& context = m.context();
  const DType dtype = m.weight(arch.vision.patch_weight).dtype();
  const Tensor pixels = tensor::to(images.pixels, dtype);
  TowerOutput seen = call([&](Tensor x) { return forward_qwen_tower(m, arch, x, images); }, pixels);
  const tensor::Dims count{images.grids.size(0)};
  const std::int64_t side = images.patches_of_side / arch.vision.merge;
  {
    const Tensor patches = tensor::empty(context, Op::prod, count, DType::i64);
    tensor::empty(context, Op::floor_divide, count, DType::i64);
  }
  ImageFeatures out;
  out.last = std::move(seen.last);
  out.deep = std::move(seen.deep);
  out.by_image = tensor::split(std::move(seen.merged), side * side, 0);
  return out;
}

// What the next sample's names do not take the place of stays bound.
Tensor qwen_token_positions(Modules& m, const Architecture& arch, const Images& images, const Tensor& ids) {
  tensor::Context& context = m.context();
  const tensor::Scope named(context, context.intern("rope_index"));
  const std::int64_t samples = ids.size(0);
  const std::int64_t seq = ids.size(1);
  const auto number = [&](Op op) { return tensor::empty(context, op, {}, DType::i64); };
  const std::int64_t side = images.patches_of_side / arch.vision.merge;
  const std::int64_t behind = seq - side * side - kTokensBeforeImage;
  Tensor positions = tensor::empty(context, Op::zeros, {3, samples, seq}, DType::i64);
  Tensor before, image, after, reached, joined;
  std::vector<Tensor> deltas;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (Tensor* old : {&reached, &before, &after}) old->reset();
    before = text_positions(context, kTokensBeforeImage);
    image = image_positions(context, side);
    {
      tensor::empty(context, Op::compare, {}, DType::boolean);
      const Tensor extent = number(Op::floor_divide);
      reached = number(Op::add);
    }
    if (behind > 0) after = text_positions(context, behind);
    joined = tensor::empty(context, Op::cat, {3, seq}, DType::i64);
    Tensor next;
    {
      const Tensor highest = number(Op::maximum);
      next = number(Op::add);
    }
    deltas.push_back(number(Op::sub));
  }
  Tensor moved = tensor::empty(context, Op::cast, {samples}, DType::i64);
  for (Tensor& delta : deltas) delta.reset();
  m.remember(tensor::unsqueeze(std::move(moved), 1));
  return positions;
}

}  // namespace ullage::model
