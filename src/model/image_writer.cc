#include "model/image_writer.h"

#include "model/config_fields.h"

namespace ullage::model {
namespace {

ImageModule plain(ImageModuleKind kind, std::string name) {
  ImageModule module;
  module.kind = kind;
  module.name = std::move(name);
  return module;
}

ImageModule pool_of(ImageModuleKind kind, std::string name, Pool2d pool) {
  ImageModule module = plain(kind, std::move(name));
  module.pool = pool;
  return module;
}

}  // namespace

ImageModule ImageWriter::conv(std::string name, std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions o) {
  ImageModule module = plain(ImageModuleKind::conv2d, std::move(name));
  const Dimension window = axis(Axis::kernel, kernel);
  const Dimension channels = axis(Axis::channels, out);
  module.conv = {{}, {}, kernel, o.stride, o.padding, o.groups};
  module.conv.weight =
      parameters_.add(module.name + ".weight", {channels, axis(Axis::channels, in / o.groups), window, window});
  if (o.bias) module.conv.bias = parameters_.add(module.name + ".bias", {channels});
  return module;
}

ImageModule ImageWriter::batch_norm(std::string name, std::int64_t channels) {
  ImageModule module = plain(ImageModuleKind::batch_norm2d, std::move(name));
  module.norm.weight = parameters_.add(module.name + ".weight", {axis(Axis::channels, channels)});
  module.norm.bias = parameters_.add(module.name + ".bias", {axis(Axis::channels, channels)});
  module.norm.running_mean = add_buffer(module.name + ".running_mean", {channels}, DType::f32, true);
  module.norm.running_var = add_buffer(module.name + ".running_var", {channels}, DType::f32, true);
  add_buffer(module.name + ".num_batches_tracked", {}, DType::i64, false);
  return module;
}

ImageModule ImageWriter::linear(std::string name, const Dimension& in, const Dimension& out) {
  ImageModule module = plain(ImageModuleKind::linear, std::move(name));
  module.linear = parameters_.linear(module.name, in, out, true);
  return module;
}

std::size_t ImageWriter::add_buffer(std::string name, std::vector<std::int64_t> sizes, DType dtype,
                                    bool in_model_dtype) {
  architecture_.buffers.push_back({std::move(name), std::move(sizes), dtype, in_model_dtype, true});
  return architecture_.buffers.size() - 1;
}

ImageModule relu(std::string name) { return plain(ImageModuleKind::relu, std::move(name)); }
ImageModule relu6(std::string name) { return plain(ImageModuleKind::relu6, std::move(name)); }
ImageModule flatten(std::string name) { return plain(ImageModuleKind::flatten, std::move(name)); }

ImageModule max_pool(std::string name, Pool2d pool) {
  return pool_of(ImageModuleKind::max_pool2d, std::move(name), pool);
}
ImageModule avg_pool(std::string name, Pool2d pool) {
  return pool_of(ImageModuleKind::avg_pool2d, std::move(name), pool);
}

ImageModule adaptive_avg_pool(std::string name, std::int64_t pixels) {
  ImageModule module = plain(ImageModuleKind::adaptive_avg_pool2d, std::move(name));
  module.pixels = pixels;
  return module;
}

ImageModule dropout(std::string name, double p) {
  ImageModule module = plain(ImageModuleKind::dropout, std::move(name));
  module.dropout = p;
  return module;
}

ImageModule block(ImageModuleKind kind, std::string name, std::vector<ImageModule> children) {
  ImageModule module = plain(kind, std::move(name));
  module.children = std::move(children);
  return module;
}

ImageModule sequential(std::string name, std::vector<ImageModule> children) {
  return block(ImageModuleKind::sequential, std::move(name), std::move(children));
}

std::string child_name(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

Dimension flattened(std::int64_t channels, std::int64_t pixels) {
  return axis(Axis::channels, channels, pixels * pixels);
}
Dimension features(std::int64_t count) { return axis(Axis::hidden, count); }
Dimension classes_of(std::int64_t count) { return axis(Axis::classes, count); }

}  // namespace ullage::model
