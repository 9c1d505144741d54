// Writing an image network: every call registers what the module owns and returns the module.
//
// Order of calls is order of registration, and so of the optimizer: never put two calls of a writer into one argument
// list, whose order of evaluation differs between compilers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
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
  explicit ImageWriter(Architecture& architecture)
      : architecture_(architecture), parameters_(architecture.parameters, false) {}

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

// "parent.name", as checkpoints have it; the root has no name.
std::string child_name(const std::string& parent, std::string_view name);

// A Sequential whose children are called by number.
class NumberedModules {
 public:
  explicit NumberedModules(std::string name) : name_(std::move(name)) {}

  // The name of the child to come.
  std::string next() const { return child_name(name_, std::to_string(children_.size())); }
  void add(ImageModule module) { children_.push_back(std::move(module)); }
  ImageModule done() { return sequential(std::move(name_), std::move(children_)); }

 private:
  std::string name_;
  std::vector<ImageModule> children_;
};

// What a linear layer reads and gives: flattened images of so many channels, of `pixels` a side each; features;
// classes.
Dimension flattened(std::int64_t channels, std::int64_t pixels = 1);
Dimension features(std::int64_t count);
Dimension classes_of(std::int64_t count);

}  // namespace ullage::model
