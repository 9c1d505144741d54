// Writing an image network: every call registers what the module owns and returns the module.
//
// Order of calls is order of registration, and so of the optimizer: never put two calls into one argument list (a braced
// list of modules is fine, it is evaluated from left to right).
#pragma once

#include <string>
#include <vector>

#include "model/architecture.h"

namespace ullage::model {

struct ConvOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = false;
};

class ImageWriter {
 public:
  explicit ImageWriter(Architecture& architecture) : architecture_(architecture), parameters_(architecture.parameters, false) {}

  ImageModule conv(std::string name, std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions options);
  // With running_mean, running_var and num_batches_tracked as buffers.
  ImageModule batch_norm(std::string name, std::int64_t channels);
  // With bias. Flattened images have channels of so many pixels: axis(Axis::channels, 256, 36).
  ImageModule linear(std::string name, const Dimension& in, const Dimension& out);

 private:
  std::size_t add_buffer(std::string name, std::vector<std::int64_t> sizes, DType dtype, bool in_model_dtype);

  Architecture& architecture_;
  ParameterList parameters_;
};

ImageModule relu(std::string name);
ImageModule relu6(std::string name);
ImageModule max_pool(std::string name, Pool2d pool);
ImageModule avg_pool(std::string name, Pool2d pool);
ImageModule adaptive_avg_pool(std::string name, std::int64_t pixels);
ImageModule flatten(std::string name);
ImageModule dropout(std::string name, double p);
// A module with children: sequential, or one of the blocks.
ImageModule block(ImageModuleKind kind, std::string name, std::vector<ImageModule> children);
ImageModule sequential(std::string name, std::vector<ImageModule> children);

}  // namespace ullage::model
