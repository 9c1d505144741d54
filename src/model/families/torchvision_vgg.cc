// AlexNet and VGG: plain convolutions, then three linear layers.
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kHidden = 4096;

void add_conv_relu(ImageWriter& w, NumberedModules& to, std::int64_t in, std::int64_t out, std::int64_t kernel,
                   ConvOptions options) {
  options.bias = true;
  to.add(w.conv(to.next(), in, out, kernel, options));
  to.add(relu(to.next()));
}

ImageModule pooled_and_classified(NumberedModules convolutions, std::int64_t pixels, NumberedModules classifier) {
  std::vector<ImageModule> network;
  network.push_back(convolutions.done());
  network.push_back(adaptive_avg_pool("avgpool", pixels));
  network.push_back(flatten("flatten"));
  network.push_back(classifier.done());
  return sequential("", std::move(network));
}

}  // namespace

ImageModule write_alexnet(ImageWriter& w, std::int64_t classes) {
  NumberedModules convolutions("features");
  add_conv_relu(w, convolutions, 3, 64, 11, {.stride = 4, .padding = 2});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  add_conv_relu(w, convolutions, 64, 192, 5, {.padding = 2});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  add_conv_relu(w, convolutions, 192, 384, 3, {.padding = 1});
  add_conv_relu(w, convolutions, 384, 256, 3, {.padding = 1});
  add_conv_relu(w, convolutions, 256, 256, 3, {.padding = 1});
  convolutions.add(max_pool(convolutions.next(), {3, 2, 0}));
  const std::int64_t pixels = 6;
  NumberedModules classifier("classifier");
  classifier.add(dropout(classifier.next(), 0.5));
  classifier.add(w.linear(classifier.next(), flattened(256, pixels), features(kHidden)));
  classifier.add(relu(classifier.next()));
  classifier.add(dropout(classifier.next(), 0.5));
  classifier.add(w.linear(classifier.next(), features(kHidden), features(kHidden)));
  classifier.add(relu(classifier.next()));
  classifier.add(w.linear(classifier.next(), features(kHidden), classes_of(classes)));
  return pooled_and_classified(std::move(convolutions), pixels, std::move(classifier));
}

ImageModule write_vgg(ImageWriter& w, std::array<int, 5> depths, bool batch_norm, std::int64_t classes) {
  constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
  NumberedModules convolutions("features");
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
  NumberedModules classifier("classifier");
  classifier.add(w.linear(classifier.next(), flattened(channels, pixels), features(kHidden)));
  classifier.add(relu(classifier.next()));
  classifier.add(dropout(classifier.next(), 0.5));
  classifier.add(w.linear(classifier.next(), features(kHidden), features(kHidden)));
  classifier.add(relu(classifier.next()));
  classifier.add(dropout(classifier.next(), 0.5));
  classifier.add(w.linear(classifier.next(), features(kHidden), classes_of(classes)));
  return pooled_and_classified(std::move(convolutions), pixels, std::move(classifier));
}

}  // namespace ullage::model
