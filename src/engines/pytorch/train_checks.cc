#include "engines/pytorch/train_checks.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/pytorch/virtual_tokens.h"
#include "model/limits.h"

namespace ullage::engines::pytorch {
namespace {

Expected<void> check_module_tree(const model::Image& image, const TrainOptions& options) {
  if (options.recompute != Recompute::none) {
    return fail(ErrorCode::invalid_argument, "--recompute",
                fmt::format("{} has no layers that its code could run again; leave it at none", image.arch));
  }
  return model::check_image_size(image, options.image_size, options.micro_batch);
}

Expected<void> check_images(const model::Architecture& architecture, const TrainOptions& options) {
  if (architecture.is_module_tree()) return check_module_tree(architecture.image, options);
  if (options.image_size == architecture.image.size) return {};
  return fail(ErrorCode::invalid_argument, "--image-size",
              fmt::format("{} pixels, but the model has learned positions for images of {}; leave it out, or set "
                          "image_size",
                          options.image_size, architecture.image.size));
}

Expected<void> check_encoder_decoder(const TrainOptions& options) {
  if (options.recompute_reentrant) {
    return fail(ErrorCode::invalid_argument, "--recompute-reentrant",
                "not modelled for an encoder-decoder, whose layers share more than one tensor; leave it out");
  }
  if (options.loss == Loss::none) {
    return fail(ErrorCode::invalid_argument, "--loss",
                "an encoder-decoder reads its decoder's tokens off the labels, which only the full loss has");
  }
  return {};
}

// The most that anything of one sample is long.
std::int64_t positions_of(const model::Architecture& architecture, const TrainOptions& options) {
  switch (architecture.input) {
    // An image has more patches than tokens.
    case model::InputKind::tokens: return options.seq_len * architecture.vision.merge * architecture.vision.merge;
    case model::InputKind::images: return options.image_size * options.image_size;
    case model::InputKind::sound: return std::max(options.seq_len, architecture.ear.frames);
  }
  return options.seq_len;
}

// Images, and the windows in them, are followed one by one.
constexpr std::int64_t kMostWindows = 1 << 14;

Expected<void> check_images_fit(const model::Vision& vision, std::int64_t side, const TrainOptions& options) {
  const std::int64_t patches = model::patches_of_side(vision, side);
  const std::int64_t windows_of_side = vision.window > 0 ? patches / vision.merge / vision.window + 1 : 1;
  const double windows = static_cast<double>(options.micro_batch) * static_cast<double>(windows_of_side) *
                         static_cast<double>(windows_of_side);
  const double pixel_bytes = static_cast<double>(options.micro_batch) * static_cast<double>(patches) *
                             static_cast<double>(patches) * static_cast<double>(vision.values_of_patch()) *
                             size_of(DType::f32);
  if (windows <= static_cast<double>(kMostWindows) && pixel_bytes <= model::kMostBytes) return {};
  return fail(ErrorCode::invalid_argument, "--micro-batch",
              fmt::format("{} images of {} pixels a side, in {} windows each, are more than can be followed; use a "
                          "smaller micro-batch or smaller images",
                          options.micro_batch, side, windows_of_side * windows_of_side));
}

// Each sequence holds one image.
Expected<void> check_vision(const model::Vision& vision, const TrainOptions& options) {
  if (options.kernels == Kernels::cpu)
    return fail(ErrorCode::unsupported, "--kernels", "cpu with a vision-language model is not in this version");
  if (options.loss == Loss::fused)
    return fail(ErrorCode::unsupported, "--loss", "fused with a vision-language model is not in this version");
  if (vision.whole_images && options.image_size != vision.size) {
    return fail(ErrorCode::invalid_argument, "--image-size",
                fmt::format("{} pixels, but the processor makes every image one of {}; leave it out",
                            options.image_size, vision.size));
  }
  const std::int64_t side = model::resized_side(vision, options.image_size, options.image_max_pixels);
  const std::int64_t tokens = model::tokens_of_image(vision, side);
  if (tokens + model::kTokensBeforeImage <= options.seq_len) return check_images_fit(vision, side, options);
  return fail(
      ErrorCode::invalid_argument, "--seq-len",
      fmt::format("{} tokens hold no image of {} and the mark in front of it; use longer sequences or a smaller "
                  "--image-size than {}",
                  options.seq_len, tokens, options.image_size));
}

}  // namespace

Expected<void> check_step(const model::Architecture& architecture, const TrainOptions& options) {
  if (architecture.input == model::InputKind::images) {
    if (auto sized = check_images(architecture, options); !sized) return sized;
  }
  if (architecture.vision) {
    if (auto seen = check_vision(architecture.vision, options); !seen) return seen;
  } else if (architecture.encoder_layers > 0) {
    if (auto paired = check_encoder_decoder(options); !paired) return paired;
  }
  const std::int64_t positions = positions_of(architecture, options);
  if (auto counted = model::check_size(architecture, options.micro_batch, positions); !counted) return counted;
  const bool bounded = architecture.positions.weight || architecture.bounded_positions;
  if (bounded && options.seq_len > architecture.max_positions) {
    return fail(ErrorCode::invalid_argument, "--seq-len",
                fmt::format("{} tokens, but the model has {} for {} only", options.seq_len,
                            architecture.bounded_positions ? "tables of positions" : "learned positions",
                            architecture.max_positions));
  }
  return {};
}

Expected<void> check_adapted(const model::Architecture& architecture, const model::TuningPlan& plan,
                             const TrainOptions& options) {
  if (auto tokens = check_virtual_tokens(architecture, options.tuning); !tokens) return tokens;
  const model::ParameterRef head = architecture.head.weight;
  if (options.loss == Loss::fused && head && !plan.globals[static_cast<std::size_t>(head.index)].adapter.empty())
    return fail(ErrorCode::unsupported, "--loss", "fused with an adapter on the head is not in this version");
  const model::Architecture whole = model::with_added_parameters(architecture, plan);
  return model::check_parameters(whole, "--lora").and_then([&] {
    return model::check_size(whole, options.micro_batch, positions_of(architecture, options));
  });
}

}  // namespace ullage::engines::pytorch
