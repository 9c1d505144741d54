#include "cli/size_check.h"

#include <algorithm>

namespace ullage::cli {
namespace {

constexpr double kMost = 1152921504606846976.0;  // 2^60

double elements(const model::Parameter& parameter) {
  double out = 1;
  for (const model::Dimension& dim : parameter.dims) out *= static_cast<double>(dim.size());
  return out;
}

double elements(const std::vector<model::Parameter>& parameters) {
  double out = 0;
  for (const model::Parameter& parameter : parameters) out += elements(parameter);
  return out;
}

struct Layers {
  double parameters = 0;
  double widths = 0;  // sum of the sides of all weights: no activation of a layer is wider
  double heads = 0;
};

Layers layers_of(const model::Architecture& architecture) {
  Layers out;
  for (const std::uint8_t index : architecture.layers) {
    const model::LayerKind& kind = architecture.kinds[index];
    out.parameters += elements(kind.parameters);
    for (const model::Parameter& parameter : kind.parameters) {
      for (const model::Dimension& dim : parameter.dims) out.widths += static_cast<double>(dim.size());
    }
    out.heads += static_cast<double>(kind.attention.heads);
  }
  return out;
}

}  // namespace

Expected<void> check_countable(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options) {
  const Layers layers = layers_of(architecture);
  const double parameters = layers.parameters + elements(architecture.parameters);
  if (parameters * 32 > kMost) {
    return fail(ErrorCode::invalid_argument, architecture.name,
                "has more parameters than can be counted; check the dimensions of its configuration");
  }
  const bool image = !architecture.image.arch.empty();
  const double positions = image ? static_cast<double>(options.image_size) * static_cast<double>(options.image_size)
                                 : static_cast<double>(options.seq_len);
  const double samples = static_cast<double>(options.micro_batch);
  const double widths =
      layers.widths + static_cast<double>(architecture.vocab + architecture.hidden) + (image ? 1e5 : 0);
  const double activations = samples * positions * (widths * 16 + layers.heads * 16 * (image ? 0 : positions));
  const double work = 8 * samples * positions * (parameters + widths) *
                      static_cast<double>(std::min<std::int64_t>(options.grad_accum, 3));
  if (activations > kMost || work > 8 * kMost || work * static_cast<double>(options.grad_accum) > 8 * kMost) {
    return fail(ErrorCode::invalid_argument, image ? "--micro-batch" : "--seq-len",
                "more than can be counted; use a smaller micro-batch or shorter sequences");
  }
  return {};
}

}  // namespace ullage::cli
