#include "model/image.h"

#include <fmt/core.h>

#include "tensor/windows.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kLargestTried = 4096;  // pixels; every known network works far below

// Pixels of a side as an image passes through, and the first module that could not take it.
struct Passage {
  std::int64_t pixels = 0;
  std::int64_t batch = 1;
  const ImageModule* stuck = nullptr;
};

void slide(Passage& image, const ImageModule& module, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  image.pixels = tensor::window_positions(image.pixels, kernel, stride, padding);
  if (image.pixels < 1) image.stuck = &module;
}

void pass(Passage& image, const ImageModule& module) {
  switch (module.kind) {
    case ImageModuleKind::conv2d:
      return slide(image, module, module.conv.kernel, module.conv.stride, module.conv.padding);
    case ImageModuleKind::max_pool2d:
    case ImageModuleKind::avg_pool2d:
      return slide(image, module, module.pool.kernel, module.pool.stride, module.pool.padding);
    case ImageModuleKind::adaptive_avg_pool2d: image.pixels = module.pixels; return;
    case ImageModuleKind::batch_norm2d:
      if (image.batch == 1 && image.pixels == 1) image.stuck = &module;
      return;
    default: break;
  }
  const std::size_t shortcuts = module.has_shortcut ? 1 : 0;
  for (std::size_t i = 0; i + shortcuts < module.children.size() && image.stuck == nullptr; ++i) {
    pass(image, module.children[i]);
  }
}

const ImageModule* first_stuck(const ImageModule& network, std::int64_t size, std::int64_t batch) {
  Passage image{size, batch, nullptr};
  pass(image, network);
  return image.stuck;
}

std::int64_t smallest_size(const ImageModule& network, std::int64_t batch) {
  std::int64_t size = 1;
  while (size < kLargestTried && first_stuck(network, size, batch) != nullptr) ++size;
  return size;
}

}  // namespace

Expected<void> check_image_size(const Image& image, std::int64_t size, std::int64_t batch) {
  if (size > kMaxImagePixels) {
    return fail(ErrorCode::too_large, "--image-size",
                fmt::format("{} pixels a side; expected at most {}", size, kMaxImagePixels));
  }
  const ImageModule* stuck = first_stuck(image.network, size, batch);
  if (stuck == nullptr) return {};
  const std::string_view why = stuck->kind == ImageModuleKind::batch_norm2d ? "would see a single value of each channel"
                                                                            : "would have nothing left to look at";
  return fail(ErrorCode::invalid_argument, "--image-size",
              fmt::format("{} pixels are too few for {} with {} to a micro-batch: {} {}; expected at least {}", size,
                          image.arch, batch == 1 ? "one image" : fmt::format("{} images", batch), stuck->name, why,
                          smallest_size(image.network, batch)));
}

}  // namespace ullage::model
