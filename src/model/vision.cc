#include "model/vision.h"

#include <algorithm>
#include <cmath>

namespace ullage::model {
namespace {

// To the nearest multiple, halves to an even one, as Python rounds.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t factor) {
  const std::int64_t below = value / factor;
  const std::int64_t twice = 2 * (value % factor);
  const bool up = twice > factor || (twice == factor && below % 2 != 0);
  return (below + (up ? 1 : 0)) * factor;
}

}  // namespace

std::int64_t resized_side(const Vision& vision, std::int64_t side, std::int64_t most_pixels) {
  if (vision.whole_images) return vision.size;
  const std::int64_t factor = vision.patch * vision.merge;
  const std::int64_t most = most_pixels > 0 ? most_pixels : vision.most_pixels;
  const std::int64_t out = nearest_multiple(side, factor);
  const auto pixels = static_cast<double>(side) * static_cast<double>(side);
  const auto multiples = [&](double length) { return length / static_cast<double>(factor); };
  if (out * out > most) {
    const double shrink = std::sqrt(pixels / static_cast<double>(most));
    const auto whole = static_cast<std::int64_t>(std::floor(multiples(static_cast<double>(side) / shrink)));
    return std::max<std::int64_t>(whole, 1) * factor;
  }
  if (out * out < vision.least_pixels) {
    const double grow = std::sqrt(static_cast<double>(vision.least_pixels) / pixels);
    return static_cast<std::int64_t>(std::ceil(multiples(static_cast<double>(side) * grow))) * factor;
  }
  return out;
}

std::int64_t patches_of_side(const Vision& vision, std::int64_t side) { return side / vision.patch; }

std::int64_t tokens_of_image(const Vision& vision, std::int64_t side) {
  const std::int64_t of_side = side / vision.patch / vision.merge;
  return of_side * of_side + (vision.keeps_class ? 1 : 0);
}

Windows windows_of_image(const Vision& vision, std::int64_t patches_of_side) {
  const std::int64_t tokens = patches_of_side / vision.merge;
  // What is left of the last window is padded, a whole one where nothing is left.
  const std::int64_t of_side = tokens / vision.window + 1;
  Windows out;
  out.counted = of_side * of_side;
  const auto length = [&](std::int64_t i) { return std::min(vision.window, tokens - i * vision.window); };
  for (std::int64_t row = 0; row < of_side; ++row) {
    for (std::int64_t column = 0; column < of_side; ++column) {
      const std::int64_t held = length(row) * length(column) * vision.merge * vision.merge;
      if (held > 0) out.patches.push_back(held);
    }
  }
  return out;
}

}  // namespace ullage::model
