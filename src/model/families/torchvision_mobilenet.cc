// MobileNetV2.
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

void add_conv_norm(ImageWriter& w, NumberedModules& to, std::int64_t in, std::int64_t out, std::int64_t kernel,
                   ConvOptions options) {
  options.padding = (kernel - 1) / 2;
  to.add(w.conv(to.next(), in, out, kernel, options));
  to.add(w.batch_norm(to.next(), out));
}

ImageModule conv_norm_relu6(ImageWriter& w, std::string name, std::int64_t in, std::int64_t out, std::int64_t kernel,
                            ConvOptions options) {
  NumberedModules children(std::move(name));
  add_conv_norm(w, children, in, out, kernel, options);
  children.add(relu6(children.next()));
  return children.done();
}

// One row of the paper's table: `blocks` blocks, the first with `stride`.
struct Stage {
  std::int64_t expansion = 1;
  std::int64_t channels = 0;
  std::int64_t blocks = 1;
  std::int64_t stride = 1;
};

ImageModule inverted_residual(ImageWriter& w, const std::string& name, std::int64_t in, const Stage& stage,
                              std::int64_t stride) {
  const std::int64_t inner = in * stage.expansion;
  NumberedModules conv(child_name(name, "conv"));
  if (stage.expansion != 1) conv.add(conv_norm_relu6(w, conv.next(), in, inner, 1, {}));
  conv.add(conv_norm_relu6(w, conv.next(), inner, inner, 3, {.stride = stride, .groups = inner}));
  add_conv_norm(w, conv, inner, stage.channels, 1, {});
  const bool adds_up = stride == 1 && in == stage.channels;
  std::vector<ImageModule> children;
  children.push_back(conv.done());
  return block(adds_up ? ImageModuleKind::inverted_residual : ImageModuleKind::sequential, name, std::move(children));
}

}  // namespace

ImageModule write_mobilenet_v2(ImageWriter& w, std::int64_t classes) {
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  constexpr std::int64_t kLast = 1280;
  std::int64_t channels = 32;
  NumberedModules parts("features");
  parts.add(conv_norm_relu6(w, parts.next(), 3, channels, 3, {.stride = 2}));
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      parts.add(inverted_residual(w, parts.next(), channels, stage, i == 0 ? stage.stride : 1));
      channels = stage.channels;
    }
  }
  parts.add(conv_norm_relu6(w, parts.next(), channels, kLast, 1, {}));
  NumberedModules classifier("classifier");
  classifier.add(dropout(classifier.next(), 0.2));
  classifier.add(w.linear(classifier.next(), flattened(kLast), classes_of(classes)));
  std::vector<ImageModule> network;
  network.push_back(parts.done());
  network.push_back(adaptive_avg_pool("avgpool", 1));
  network.push_back(flatten("flatten"));
  network.push_back(classifier.done());
  return sequential("", std::move(network));
}

}  // namespace ullage::model
