// Sizes of what convolutions and pools make of an image.
#pragma once

#include <cstdint>

namespace ullage::tensor {

// Positions of a window of `kernel` pixels along `size` pixels, padded on both sides; 0 where it fits nowhere
// (torch.nn.Conv2d and MaxPool2d, dilation 1, ceil_mode off).
constexpr std::int64_t window_positions(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                        std::int64_t padding) {
  const std::int64_t room = size + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace ullage::tensor
