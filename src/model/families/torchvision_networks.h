// The networks of torchvision 0.27 (models/*.py), written down once: modules in the order in which torchvision
// registers and runs them. A function writes one network and adds its parameters and buffers through the writer.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "model/image_writer.h"

namespace ullage::model {

// AlexNet, the one of "One weird trick" (arXiv:1404.5997).
ImageModule write_alexnet(ImageWriter& w, std::int64_t classes);

// VGG (arXiv:1409.1556, table 1): convolutions in each of the five stages.
ImageModule write_vgg(ImageWriter& w, std::array<int, 5> depths, bool batch_norm, std::int64_t classes);

// ResNet (arXiv:1512.03385, table 1): blocks in each of the four stages; `bottleneck` from 50 layers on.
ImageModule write_resnet(ImageWriter& w, std::array<int, 4> depths, bool bottleneck, std::int64_t classes);

// DenseNet (arXiv:1608.06993, table 1) with 32 new channels a layer: layers in each of the four blocks.
ImageModule write_densenet(ImageWriter& w, std::array<int, 4> depths, std::int64_t classes);

// MobileNetV2 (arXiv:1801.04381, table 2) at its full width.
ImageModule write_mobilenet_v2(ImageWriter& w, std::int64_t classes);

// The network of that name; nothing when the name is not known.
std::optional<ImageModule> write_network(ImageWriter& writer, std::string_view arch, std::int64_t classes);

// Names of all networks, in a fixed order.
std::vector<std::string_view> network_names();

}  // namespace ullage::model
