// DenseNet, with torch.cat of all earlier results and without recompute (torchvision's memory_efficient is off).
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4 * kGrowth;

ImageModule dense_layer(ImageWriter& w, const std::string& name, std::int64_t in) {
  std::vector<ImageModule> children;
  children.push_back(w.batch_norm(child_name(name, "norm1"), in));
  children.push_back(relu(child_name(name, "relu1")));
  children.push_back(w.conv(child_name(name, "conv1"), in, kBottleneck, 1, {}));
  children.push_back(w.batch_norm(child_name(name, "norm2"), kBottleneck));
  children.push_back(relu(child_name(name, "relu2")));
  children.push_back(w.conv(child_name(name, "conv2"), kBottleneck, kGrowth, 3, {.padding = 1}));
  return sequential(name, std::move(children));
}

ImageModule dense_block(ImageWriter& w, const std::string& name, int depth, std::int64_t in) {
  std::vector<ImageModule> layers;
  for (int i = 0; i < depth; ++i) {
    layers.push_back(dense_layer(w, child_name(name, "denselayer" + std::to_string(i + 1)), in + i * kGrowth));
  }
  return block(ImageModuleKind::dense_block, name, std::move(layers));
}

// Halves the channels and the pixels.
ImageModule transition(ImageWriter& w, const std::string& name, std::int64_t in) {
  std::vector<ImageModule> children;
  children.push_back(w.batch_norm(child_name(name, "norm"), in));
  children.push_back(relu(child_name(name, "relu")));
  children.push_back(w.conv(child_name(name, "conv"), in, in / 2, 1, {}));
  children.push_back(avg_pool(child_name(name, "pool"), {2, 2, 0}));
  return sequential(name, std::move(children));
}

}  // namespace

ImageModule write_densenet(ImageWriter& w, std::array<int, 4> depths, std::int64_t classes) {
  std::int64_t channels = 2 * kGrowth;
  std::vector<ImageModule> parts;
  parts.push_back(w.conv("features.conv0", 3, channels, 7, {.stride = 2, .padding = 3}));
  parts.push_back(w.batch_norm("features.norm0", channels));
  parts.push_back(relu("features.relu0"));
  parts.push_back(max_pool("features.pool0", {3, 2, 1}));
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const std::string number = std::to_string(stage + 1);
    parts.push_back(dense_block(w, "features.denseblock" + number, depths[stage], channels));
    channels += depths[stage] * kGrowth;
    if (stage + 1 == depths.size()) break;
    parts.push_back(transition(w, "features.transition" + number, channels));
    channels /= 2;
  }
  parts.push_back(w.batch_norm("features.norm5", channels));
  std::vector<ImageModule> network;
  network.push_back(sequential("features", std::move(parts)));
  network.push_back(relu("relu"));
  network.push_back(adaptive_avg_pool("avgpool", 1));
  network.push_back(flatten("flatten"));
  network.push_back(w.linear("classifier", flattened(channels), classes_of(classes)));
  return sequential("", std::move(network));
}

}  // namespace ullage::model
