// An image network as data: a tree of modules in the order in which they are registered and run.
//
// A module without children is one of torch.nn's; one with children runs them in order, with what its kind adds. The
// same tree gives the parameters, the buffers and the forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.h"
#include "model/parameter.h"

namespace ullage::model {

// weight [out, in / groups, kernel, kernel]; square windows.
struct Conv2d {
  ParameterRef weight;
  ParameterRef bias;  // may be empty
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
};

// weight and bias [channels]; the running statistics are buffers of the Architecture, by index.
struct BatchNorm2d {
  ParameterRef weight;
  ParameterRef bias;
  std::size_t running_mean = 0;
  std::size_t running_var = 0;
};

struct Pool2d {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};

enum class ImageModuleKind : std::uint8_t {
  sequential,
  conv2d,
  batch_norm2d,
  relu,   // in place
  relu6,  // in place
  max_pool2d,
  avg_pool2d,
  adaptive_avg_pool2d,  // to `pixels` a side
  flatten,
  dropout,
  linear,
  residual_block,     // relu(f(x) += x), or += shortcut(x); f are the children before the shortcut
  inverted_residual,  // x + f(x)
  dense_block,        // every child gets all earlier results, concatenated, and so does what follows
};

struct ImageModule {
  ImageModuleKind kind = ImageModuleKind::sequential;
  std::string name;  // as checkpoints have it, from the root: "layer1.0.conv1"
  Conv2d conv;
  BatchNorm2d norm;
  Pool2d pool;
  Linear linear;
  std::int64_t pixels = 1;
  double dropout = 0;
  bool has_shortcut = false;  // the last child is a residual block's shortcut
  std::vector<ImageModule> children;
};

// Largest side of an image, pixels; what lies beyond is a slip, and its products would not fit into 64 bits.
inline constexpr std::int64_t kMaxImagePixels = 1 << 16;

// What an image network has instead of layers.
struct Image {
  std::string arch;  // torchvision's name; empty for other models
  std::int64_t classes = 0;
  std::int64_t size = 224;  // pixels of a side, the published default
  std::int64_t channels = 3;
  ImageModule network;
};

// Whether images of `size` pixels a side, `batch` of them, pass through the network in training: every window must find
// a place, and batch norm must see more than one value of each channel, as PyTorch demands. The error names the module
// and the smallest size that works.
Expected<void> check_image_size(const Image& image, std::int64_t size, std::int64_t batch);

}  // namespace ullage::model
