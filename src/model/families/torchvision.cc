#include "model/families/torchvision.h"

#include <fmt/core.h>

#include "base/nearest.h"
#include "model/families/torchvision_networks.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kMaxClasses = 1 << 24;

Tensor run(Modules& m, const ImageModule& module, Tensor x);

// What nn.Sequential does, for the children [0, count).
Tensor run_children(Modules& m, const ImageModule& module, std::size_t count, Tensor x) {
  for (std::size_t i = 0; i < count; ++i) {
    x = call([&](Tensor input) { return run(m, module.children[i], std::move(input)); }, x);
  }
  return x;
}

// The input lives to the end of the block, the shortcut's result too.
Tensor residual_block(Modules& m, const ImageModule& module, Tensor x) {
  Tensor identity = x;
  const std::size_t count = module.children.size() - (module.has_shortcut ? 1 : 0);
  const Tensor out = run_children(m, module, count, x);
  if (module.has_shortcut)
    identity = call([&](Tensor input) { return run(m, module.children.back(), std::move(input)); }, x);
  tensor::iadd(out, identity);
  const tensor::Scope named(m.context(), m.context().intern(module.name + ".relu"));
  tensor::relu_in_place(out);
  return out;
}

Tensor inverted_residual(Modules& m, const ImageModule& module, Tensor x) {
  Tensor out = run_children(m, module, module.children.size(), x);
  return tensor::add(x, std::move(out));
}

Tensor dense_block(Modules& m, const ImageModule& module, Tensor x) {
  std::vector<Tensor> features{x};
  for (const ImageModule& layer : module.children) {
    const Tensor all = tensor::cat(features, 1);
    features.push_back(run(m, layer, all));
  }
  return tensor::cat(std::move(features), 1);
}

Tensor run_pool(const ImageModule& module, Tensor x) {
  const tensor::Pool2d pool{module.pool.kernel, module.pool.stride, module.pool.padding};
  if (module.kind == ImageModuleKind::max_pool2d) return tensor::max_pool2d(std::move(x), pool);
  return tensor::avg_pool2d(std::move(x), pool);
}

Tensor run(Modules& m, const ImageModule& module, Tensor x) {
  const tensor::Scope named(m.context(), m.context().intern(module.name));
  switch (module.kind) {
    case ImageModuleKind::sequential: return run_children(m, module, module.children.size(), std::move(x));
    case ImageModuleKind::conv2d: return m.conv2d(module.conv, std::move(x));
    case ImageModuleKind::batch_norm2d: return m.batch_norm2d(module.norm, std::move(x));
    case ImageModuleKind::relu: tensor::relu_in_place(x); return x;
    case ImageModuleKind::relu6: tensor::hardtanh_in_place(x); return x;
    case ImageModuleKind::max_pool2d:
    case ImageModuleKind::avg_pool2d: return run_pool(module, std::move(x));
    case ImageModuleKind::adaptive_avg_pool2d: return tensor::adaptive_avg_pool2d(std::move(x), module.pixels);
    case ImageModuleKind::flatten: {
      const std::int64_t batch = x.size(0);
      return tensor::reshape(std::move(x), {batch, -1});
    }
    case ImageModuleKind::dropout: return m.dropout(module.dropout, std::move(x));
    case ImageModuleKind::linear: return m.linear(module.linear, std::move(x));
    case ImageModuleKind::residual_block: return residual_block(m, module, std::move(x));
    case ImageModuleKind::inverted_residual: return inverted_residual(m, module, std::move(x));
    case ImageModuleKind::dense_block: return dense_block(m, module, std::move(x));
  }
  return x;
}

tl::unexpected<Error> unknown_network(const JsonObject& config, const std::string& arch) {
  const std::vector<std::string_view> known = network_names();
  const std::vector<std::string> near = nearest_names(arch, known);
  std::string list;
  for (const std::string_view name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  return fail(
      ErrorCode::unsupported, config.where("arch"),
      fmt::format("network '{}' is not modelled; {}", arch, near.empty() ? "known are " + list : did_you_mean(near)));
}

}  // namespace

Expected<Architecture> build_torchvision(const JsonObject& config) {
  const auto arch = config.string("arch", "");
  if (!arch) return tl::unexpected<Error>(arch.error());
  const auto classes = config.integer("num_classes", 1000, 1, kMaxClasses);
  if (!classes) return tl::unexpected<Error>(classes.error());
  const auto size = config.integer("image_size", 224, 1, kMaxImagePixels);
  if (!size) return tl::unexpected<Error>(size.error());
  Architecture out;
  out.family = "torchvision";
  out.input = InputKind::images;
  ImageWriter writer(out);
  std::optional<ImageModule> network = write_network(writer, *arch, *classes);
  if (!network) return unknown_network(config, *arch);
  out.image = {*arch, *classes, *size, 3, *std::move(network)};
  out.layers_at = out.parameters.size();
  return out;
}

Output forward_torchvision(Modules& m, const Architecture& arch, Batch batch) {
  Output out;
  out.logits = call([&](Tensor images) { return run(m, arch.image.network, std::move(images)); }, batch.inputs);
  if (batch.labels) out.loss = m.classification_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
