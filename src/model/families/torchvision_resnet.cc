// ResNet. The stride of a bottleneck stands at its 3x3 convolution, not at its first as in the paper.
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

struct Block {
  std::string name;
  std::int64_t in = 0;
  std::int64_t width = 0;
  std::int64_t stride = 1;

  std::string part(std::string_view child) const { return child_name(name, child); }
};

// With a shortcut where the input does not fit the sum.
ImageModule close_block(ImageWriter& w, const Block& b, std::vector<ImageModule> children, std::int64_t out) {
  ImageModule module = block(ImageModuleKind::residual_block, b.name, std::move(children));
  if (b.stride == 1 && b.in == out) return module;
  NumberedModules shortcut(b.part("downsample"));
  shortcut.add(w.conv(shortcut.next(), b.in, out, 1, {.stride = b.stride}));
  shortcut.add(w.batch_norm(shortcut.next(), out));
  module.has_shortcut = true;
  module.children.push_back(shortcut.done());
  return module;
}

ImageModule basic_block(ImageWriter& w, const Block& b) {
  std::vector<ImageModule> children;
  children.push_back(w.conv(b.part("conv1"), b.in, b.width, 3, {.stride = b.stride, .padding = 1}));
  children.push_back(w.batch_norm(b.part("bn1"), b.width));
  children.push_back(relu(b.part("relu")));
  children.push_back(w.conv(b.part("conv2"), b.width, b.width, 3, {.padding = 1}));
  children.push_back(w.batch_norm(b.part("bn2"), b.width));
  return close_block(w, b, std::move(children), b.width);
}

constexpr std::int64_t kExpansion = 4;

ImageModule bottleneck_block(ImageWriter& w, const Block& b) {
  const std::int64_t out = kExpansion * b.width;
  std::vector<ImageModule> children;
  children.push_back(w.conv(b.part("conv1"), b.in, b.width, 1, {}));
  children.push_back(w.batch_norm(b.part("bn1"), b.width));
  children.push_back(relu(b.part("relu")));
  children.push_back(w.conv(b.part("conv2"), b.width, b.width, 3, {.stride = b.stride, .padding = 1}));
  children.push_back(w.batch_norm(b.part("bn2"), b.width));
  children.push_back(relu(b.part("relu")));
  children.push_back(w.conv(b.part("conv3"), b.width, out, 1, {}));
  children.push_back(w.batch_norm(b.part("bn3"), out));
  return close_block(w, b, std::move(children), out);
}

}  // namespace

ImageModule write_resnet(ImageWriter& w, std::array<int, 4> depths, bool bottleneck, std::int64_t classes) {
  std::int64_t channels = 64;
  std::vector<ImageModule> network;
  network.push_back(w.conv("conv1", 3, channels, 7, {.stride = 2, .padding = 3}));
  network.push_back(w.batch_norm("bn1", channels));
  network.push_back(relu("relu"));
  network.push_back(max_pool("maxpool", {3, 2, 1}));
  std::int64_t width = channels;
  for (std::size_t stage = 0; stage < depths.size(); ++stage, width *= 2) {
    NumberedModules layer("layer" + std::to_string(stage + 1));
    for (int i = 0; i < depths[stage]; ++i) {
      const Block b{layer.next(), channels, width, stage > 0 && i == 0 ? 2 : 1};
      layer.add(bottleneck ? bottleneck_block(w, b) : basic_block(w, b));
      channels = bottleneck ? kExpansion * width : width;
    }
    network.push_back(layer.done());
  }
  network.push_back(adaptive_avg_pool("avgpool", 1));
  network.push_back(flatten("flatten"));
  network.push_back(w.linear("fc", flattened(channels), classes_of(classes)));
  return sequential("", std::move(network));
}

}  // namespace ullage::model
