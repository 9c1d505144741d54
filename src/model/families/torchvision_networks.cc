// The names of the networks.
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

struct Network {
  std::string_view arch;
  ImageModule (*write)(ImageWriter& writer, std::int64_t classes);
};

template <int kA, int kB, int kC, int kD, int kE, bool kBatchNorm>
ImageModule vgg(ImageWriter& w, std::int64_t classes) {
  return write_vgg(w, {kA, kB, kC, kD, kE}, kBatchNorm, classes);
}

template <int kA, int kB, int kC, int kD, bool kBottleneck>
ImageModule resnet(ImageWriter& w, std::int64_t classes) {
  return write_resnet(w, {kA, kB, kC, kD}, kBottleneck, classes);
}

ImageModule densenet121(ImageWriter& w, std::int64_t classes) { return write_densenet(w, {6, 12, 24, 16}, classes); }

constexpr Network kNetworks[] = {
    {"alexnet", write_alexnet},
    {"vgg11", vgg<1, 1, 2, 2, 2, false>},
    {"vgg11_bn", vgg<1, 1, 2, 2, 2, true>},
    {"vgg13", vgg<2, 2, 2, 2, 2, false>},
    {"vgg13_bn", vgg<2, 2, 2, 2, 2, true>},
    {"vgg16", vgg<2, 2, 3, 3, 3, false>},
    {"vgg16_bn", vgg<2, 2, 3, 3, 3, true>},
    {"vgg19", vgg<2, 2, 4, 4, 4, false>},
    {"vgg19_bn", vgg<2, 2, 4, 4, 4, true>},
    {"resnet18", resnet<2, 2, 2, 2, false>},
    {"resnet34", resnet<3, 4, 6, 3, false>},
    {"resnet50", resnet<3, 4, 6, 3, true>},
    {"resnet101", resnet<3, 4, 23, 3, true>},
    {"resnet152", resnet<3, 8, 36, 3, true>},
    {"densenet121", densenet121},
    {"mobilenet_v2", write_mobilenet_v2},
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
