// Architecture facts: torchvision 0.27, models/{alexnet,vgg,resnet,densenet,mobilenetv2}.py, and the papers named below.
#include "model/families/torchvision_networks.h"

#include <array>

#include "model/config_reader.h"

namespace ullage::model {
namespace {

using Kind = ImageModuleKind;

std::string child(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

std::string child(const std::string& parent, std::size_t number) { return child(parent, std::to_string(number)); }

// A Sequential whose children are called by number.
class Numbered {
 public:
  explicit Numbered(std::string name) : name_(std::move(name)) {}

  std::string next() const { return child(name_, children_.size()); }
  void add(ImageModule module) { children_.push_back(std::move(module)); }
  ImageModule done() { return sequential(std::move(name_), std::move(children_)); }

 private:
  std::string name_;
  std::vector<ImageModule> children_;
};

Dimension flattened(std::int64_t channels, std::int64_t pixels = 1) { return axis(Axis::channels, channels, pixels * pixels); }
Dimension features(std::int64_t count) { return axis(Axis::hidden, count); }
Dimension labels(std::int64_t count) { return axis(Axis::classes, count); }

// --- AlexNet, the one of "One weird trick" (arXiv:1404.5997) ---------------------------------------------------------

ImageModule alexnet(ImageWriter& w, std::int64_t classes) {
  const auto conv_relu = [&w](Numbered& to, std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions options) {
    to.add(w.conv(to.next(), in, out, kernel, options));
    to.add(relu(to.next()));
  };
  Numbered convolutions("features");
  conv_relu(convolutions, 3, 64, 11, {.stride = 4, .padding = 2, .bias = true});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  conv_relu(convolutions, 64, 192, 5, {.padding = 2, .bias = true});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  conv_relu(convolutions, 192, 384, 3, {.padding = 1, .bias = true});
  conv_relu(convolutions, 384, 256, 3, {.padding = 1, .bias = true});
  conv_relu(convolutions, 256, 256, 3, {.padding = 1, .bias = true});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  const std::int64_t pixels = 6;
  ImageModule classifier = sequential("classifier", {
      dropout("classifier.0", 0.5),
      w.linear("classifier.1", flattened(256, pixels), features(4096)),
      relu("classifier.2"),
      dropout("classifier.3", 0.5),
      w.linear("classifier.4", features(4096), features(4096)),
      relu("classifier.5"),
      w.linear("classifier.6", features(4096), labels(classes)),
  });
  return sequential("", {convolutions.done(), adaptive_avg_pool("avgpool", pixels), flatten("flatten"), std::move(classifier)});
}

// --- VGG (arXiv:1409.1556): five stages of 3x3 convolutions, each closed by a pool ------------------------------------

ImageModule vgg(ImageWriter& w, std::array<int, 5> depths, bool batch_norm, std::int64_t classes) {
  constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
  Numbered convolutions("features");
  std::int64_t channels = 3;
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (int i = 0; i < depths[stage]; ++i) {
      convolutions.add(w.conv(convolutions.next(), channels, kWidths[stage], 3, {.padding = 1, .bias = true}));
      channels = kWidths[stage];
      if (batch_norm) convolutions.add(w.batch_norm(convolutions.next(), channels));
      convolutions.add(relu(convolutions.next()));
    }
    convolutions.add(max_pool(convolutions.next(), {2, 2, 0}));
  }
  const std::int64_t pixels = 7;
  ImageModule classifier = sequential("classifier", {
      w.linear("classifier.0", flattened(channels, pixels), features(4096)),
      relu("classifier.1"),
      dropout("classifier.2", 0.5),
      w.linear("classifier.3", features(4096), features(4096)),
      relu("classifier.4"),
      dropout("classifier.5", 0.5),
      w.linear("classifier.6", features(4096), labels(classes)),
  });
  return sequential("", {convolutions.done(), adaptive_avg_pool("avgpool", pixels), flatten("flatten"), std::move(classifier)});
}

// --- ResNet (arXiv:1512.03385); the stride of a bottleneck stands at its 3x3 convolution -------------------------------

struct Residual {
  std::string name;
  std::int64_t in = 0;
  std::int64_t width = 0;
  std::int64_t stride = 1;
};

// Closes a block of `out` channels with a shortcut where the input does not fit the sum.
ImageModule close_residual(ImageWriter& w, const Residual& r, std::vector<ImageModule> children, std::int64_t out) {
  ImageModule module = block(Kind::residual_block, r.name, std::move(children));
  if (r.stride == 1 && r.in == out) return module;
  const std::string name = child(r.name, "downsample");
  module.has_shortcut = true;
  module.children.push_back(sequential(name, {
      w.conv(child(name, 0), r.in, out, 1, {.stride = r.stride}),
      w.batch_norm(child(name, 1), out),
  }));
  return module;
}

ImageModule basic_block(ImageWriter& w, const Residual& r) {
  return close_residual(w, r, std::vector<ImageModule>{
      w.conv(child(r.name, "conv1"), r.in, r.width, 3, {.stride = r.stride, .padding = 1}),
      w.batch_norm(child(r.name, "bn1"), r.width),
      relu(child(r.name, "relu")),
      w.conv(child(r.name, "conv2"), r.width, r.width, 3, {.padding = 1}),
      w.batch_norm(child(r.name, "bn2"), r.width),
  }, r.width);
}

ImageModule bottleneck(ImageWriter& w, const Residual& r) {
  const std::int64_t out = 4 * r.width;
  return close_residual(w, r, std::vector<ImageModule>{
      w.conv(child(r.name, "conv1"), r.in, r.width, 1, {}),
      w.batch_norm(child(r.name, "bn1"), r.width),
      relu(child(r.name, "relu")),
      w.conv(child(r.name, "conv2"), r.width, r.width, 3, {.stride = r.stride, .padding = 1}),
      w.batch_norm(child(r.name, "bn2"), r.width),
      relu(child(r.name, "relu")),
      w.conv(child(r.name, "conv3"), r.width, out, 1, {}),
      w.batch_norm(child(r.name, "bn3"), out),
  }, out);
}

using WriteBlock = ImageModule (*)(ImageWriter&, const Residual&);

ImageModule resnet(ImageWriter& w, WriteBlock write_block, std::int64_t expansion, std::array<int, 4> depths, std::int64_t classes) {
  std::vector<ImageModule> network{
      w.conv("conv1", 3, 64, 7, {.stride = 2, .padding = 3}),
      w.batch_norm("bn1", 64),
      relu("relu"),
      max_pool("maxpool", {3, 2, 1}),
  };
  std::int64_t channels = 64;
  std::int64_t width = 64;
  for (std::size_t stage = 0; stage < depths.size(); ++stage, width *= 2) {
    Numbered layer("layer" + std::to_string(stage + 1));
    for (int i = 0; i < depths[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      layer.add(write_block(w, {layer.next(), channels, width, stride}));
      channels = expansion * width;
    }
    network.push_back(layer.done());
  }
  network.push_back(adaptive_avg_pool("avgpool", 1));
  network.push_back(flatten("flatten"));
  network.push_back(w.linear("fc", flattened(channels), labels(classes)));
  return sequential("", std::move(network));
}

// --- DenseNet-121 (arXiv:1608.06993), with torch.cat of all earlier results and no recompute ---------------------------

constexpr std::int64_t kGrowth = 32;
constexpr std::int64_t kBottleneck = 4;  // times kGrowth

ImageModule dense_layer(ImageWriter& w, const std::string& name, std::int64_t in) {
  const std::int64_t inner = kBottleneck * kGrowth;
  return sequential(name, {
      w.batch_norm(child(name, "norm1"), in),
      relu(child(name, "relu1")),
      w.conv(child(name, "conv1"), in, inner, 1, {}),
      w.batch_norm(child(name, "norm2"), inner),
      relu(child(name, "relu2")),
      w.conv(child(name, "conv2"), inner, kGrowth, 3, {.padding = 1}),
  });
}

// Halves the channels and the pixels.
ImageModule transition(ImageWriter& w, const std::string& name, std::int64_t in) {
  return sequential(name, {
      w.batch_norm(child(name, "norm"), in),
      relu(child(name, "relu")),
      w.conv(child(name, "conv"), in, in / 2, 1, {}),
      avg_pool(child(name, "pool"), {2, 2, 0}),
  });
}

ImageModule densenet(ImageWriter& w, std::array<int, 4> depths, std::int64_t classes) {
  std::int64_t channels = 64;
  std::vector<ImageModule> parts{
      w.conv("features.conv0", 3, channels, 7, {.stride = 2, .padding = 3}),
      w.batch_norm("features.norm0", channels),
      relu("features.relu0"),
      max_pool("features.pool0", {3, 2, 1}),
  };
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const std::string number = std::to_string(stage + 1);
    const std::string name = "features.denseblock" + number;
    std::vector<ImageModule> layers;
    for (int i = 0; i < depths[stage]; ++i, channels += kGrowth) {
      layers.push_back(dense_layer(w, child(name, "denselayer" + std::to_string(i + 1)), channels));
    }
    parts.push_back(block(Kind::dense_block, name, std::move(layers)));
    if (stage + 1 == depths.size()) break;
    parts.push_back(transition(w, "features.transition" + number, channels));
    channels /= 2;
  }
  parts.push_back(w.batch_norm("features.norm5", channels));
  ImageModule classifier = w.linear("classifier", flattened(channels), labels(classes));
  return sequential("", {
      sequential("features", std::move(parts)),
      relu("relu"),
      adaptive_avg_pool("avgpool", 1),
      flatten("flatten"),
      std::move(classifier),
  });
}

// --- MobileNetV2 (arXiv:1801.04381, table 2) ---------------------------------------------------------------------------

ImageModule conv_norm_relu6(ImageWriter& w, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
                            ConvOptions options) {
  options.padding = (kernel - 1) / 2;
  return sequential(name, {
      w.conv(child(name, 0), in, out, kernel, options),
      w.batch_norm(child(name, 1), out),
      relu6(child(name, 2)),
  });
}

ImageModule inverted_residual(ImageWriter& w, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t stride,
                              std::int64_t expansion) {
  const std::int64_t inner = in * expansion;
  Numbered conv(child(name, "conv"));
  if (expansion != 1) conv.add(conv_norm_relu6(w, conv.next(), in, inner, 1, {}));
  conv.add(conv_norm_relu6(w, conv.next(), inner, inner, 3, {.stride = stride, .groups = inner}));
  conv.add(w.conv(conv.next(), inner, out, 1, {}));
  conv.add(w.batch_norm(conv.next(), out));
  const bool adds_up = stride == 1 && in == out;
  return block(adds_up ? Kind::inverted_residual : Kind::sequential, name, {conv.done()});
}

ImageModule mobilenet_v2(ImageWriter& w, std::int64_t classes) {
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  constexpr std::int64_t kLast = 1280;
  std::int64_t channels = 32;
  Numbered parts("features");
  parts.add(conv_norm_relu6(w, parts.next(), 3, channels, 3, {.stride = 2}));
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      parts.add(inverted_residual(w, parts.next(), channels, stage.channels, i == 0 ? stage.stride : 1, stage.expansion));
      channels = stage.channels;
    }
  }
  parts.add(conv_norm_relu6(w, parts.next(), channels, kLast, 1, {}));
  ImageModule classifier = sequential("classifier", {
      dropout("classifier.0", 0.2),
      w.linear("classifier.1", flattened(kLast), labels(classes)),
  });
  return sequential("", {parts.done(), adaptive_avg_pool("avgpool", 1), flatten("flatten"), std::move(classifier)});
}

// --- the names ---------------------------------------------------------------------------------------------------------

struct Network {
  std::string_view arch;
  ImageModule (*write)(ImageWriter& writer, std::int64_t classes);
};

template <int kA, int kB, int kC, int kD, int kE, bool kBatchNorm>
ImageModule vgg_of(ImageWriter& w, std::int64_t classes) {
  return vgg(w, {kA, kB, kC, kD, kE}, kBatchNorm, classes);
}

template <int kA, int kB, int kC, int kD>
ImageModule basic_resnet(ImageWriter& w, std::int64_t classes) {
  return resnet(w, basic_block, 1, {kA, kB, kC, kD}, classes);
}

template <int kA, int kB, int kC, int kD>
ImageModule bottleneck_resnet(ImageWriter& w, std::int64_t classes) {
  return resnet(w, bottleneck, 4, {kA, kB, kC, kD}, classes);
}

ImageModule densenet121(ImageWriter& w, std::int64_t classes) { return densenet(w, {6, 12, 24, 16}, classes); }

constexpr Network kNetworks[] = {
    {"alexnet", alexnet},
    {"vgg11", vgg_of<1, 1, 2, 2, 2, false>},
    {"vgg11_bn", vgg_of<1, 1, 2, 2, 2, true>},
    {"vgg13", vgg_of<2, 2, 2, 2, 2, false>},
    {"vgg13_bn", vgg_of<2, 2, 2, 2, 2, true>},
    {"vgg16", vgg_of<2, 2, 3, 3, 3, false>},
    {"vgg16_bn", vgg_of<2, 2, 3, 3, 3, true>},
    {"vgg19", vgg_of<2, 2, 4, 4, 4, false>},
    {"vgg19_bn", vgg_of<2, 2, 4, 4, 4, true>},
    {"resnet18", basic_resnet<2, 2, 2, 2>},
    {"resnet34", basic_resnet<3, 4, 6, 3>},
    {"resnet50", bottleneck_resnet<3, 4, 6, 3>},
    {"resnet101", bottleneck_resnet<3, 4, 23, 3>},
    {"resnet152", bottleneck_resnet<3, 8, 36, 3>},
    {"densenet121", densenet121},
    {"mobilenet_v2", mobilenet_v2},
};

}  // namespace

std::optional<ImageModule> write_network(ImageWriter& writer, std::string_view arch, std::int64_t classes) {
  for (const Network& network : kNetworks) {
    if (network.arch == arch) return network.write(writer, classes);
  }
  return std::nullopt;
}

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  for (const Network& network : kNetworks) names.push_back(network.arch);
  return names;
}

}  // namespace ullage::model
