#include "model/limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace ullage::model {
namespace {

// Weight, gradient, two states and the two or three copies that an optimizer's lists make of them, of 4 bytes each.
constexpr double kBytesPerParameter = 32;
// Input, output, their gradients and the copies of casts and contiguity beside each side of each weight.
constexpr double kBytesPerActivation = 64;
// Scores, probabilities in two types, dropped ones with their mask, and the gradients of all of them.
constexpr double kBytesPerScore = 64;

// What one layer, or all, come to; sums of doubles, which cannot overflow.
struct Extent {
  double parameters = 0;
  double widths = 0;  // of the sides of all weights: every activation is as wide as one of them
  double heads = 0;
  double head_widths = 0;  // heads x head_dim

  Extent& operator+=(const Extent& other) {
    parameters += other.parameters;
    widths += other.widths;
    heads += other.heads;
    head_widths += other.head_widths;
    return *this;
  }
};

Extent extent_of(const std::vector<Parameter>& parameters) {
  Extent out;
  for (const Parameter& parameter : parameters) {
    double elements = 1;
    for (const Dimension& dim : parameter.dims) {
      const auto size = static_cast<double>(dim.size());
      elements *= size;
      out.widths += size;
    }
    out.parameters += elements;
  }
  return out;
}

Extent extent_of(const LayerKind& kind) {
  Extent out = extent_of(kind.parameters);
  // A token goes through several experts, each as wide as the weights that hold them all.
  out.widths *= static_cast<double>(std::max<std::int64_t>(1, kind.mixture.top_k));
  out.heads = static_cast<double>(kind.attention.heads);
  out.head_widths = out.heads * static_cast<double>(kind.attention.head_dim);
  return out;
}

Extent extent_of(const Architecture& architecture) {
  std::vector<Extent> by_kind;
  for (const LayerKind& kind : architecture.kinds) by_kind.push_back(extent_of(kind));
  Extent out = extent_of(architecture.parameters);
  for (const std::uint8_t kind : architecture.layers) out += by_kind[kind];
  return out;
}

// Floating-point operations of forward, backward and recompute: eight for each weight and token, and of the two
// products of attention sixteen for each pair of tokens and element of a head.
double operations(const Extent& extent, double samples, double tokens) {
  return samples * tokens * (8 * extent.parameters + 16 * tokens * extent.head_widths);
}

// The most that a layer, or what stands outside of layers, comes to.
double most_operations(const Architecture& architecture, double samples, double tokens) {
  double most = operations(extent_of(architecture.parameters), samples, tokens);
  for (const LayerKind& kind : architecture.kinds) most = std::max(most, operations(extent_of(kind), samples, tokens));
  return most;
}

double buffer_bytes(const std::vector<Buffer>& buffers) {
  constexpr double kLargestElement = 8;
  double total = 0;
  for (const Buffer& buffer : buffers) {
    double elements = 1;
    for (const std::int64_t size : buffer.sizes) elements *= static_cast<double>(size);
    total += elements * kLargestElement;
  }
  return total;
}

// Buffers, and the tables of all positions that a step makes from them or instead of them.
double table_bytes(const Architecture& architecture) {
  constexpr double kPerEntry = 32;  // angles, cos and sin, in fp32 and in the model's type
  std::vector<double> by_kind;
  for (const LayerKind& kind : architecture.kinds) by_kind.push_back(buffer_bytes(kind.buffers));
  double total = buffer_bytes(architecture.buffers);
  for (const std::uint8_t kind : architecture.layers) total += by_kind[kind];
  if (!architecture.bounded_positions) return total;
  const auto positions = static_cast<double>(architecture.max_positions);
  const std::int64_t columns = architecture.rotary.dim + architecture.kinds[0].attention.heads;
  return total + positions * static_cast<double>(columns) * kPerEntry;
}

double parameter_bytes(const Extent& extent) { return extent.parameters * kBytesPerParameter; }

}  // namespace

Expected<void> check_parameters(const Architecture& architecture, std::string_view where) {
  const Extent extent = extent_of(architecture);
  if (table_bytes(architecture) > kMostBytes) {
    return fail(ErrorCode::invalid_argument, std::string(where),
                "describes tables of more positions than can be counted; check the number of positions");
  }
  if (parameter_bytes(extent) <= kMostBytes) return {};
  return fail(
      ErrorCode::invalid_argument, std::string(where),
      fmt::format(
          "describes {:.3g} parameters, more than can be counted; check the dimensions and the number of layers",
          extent.parameters));
}

Expected<void> check_size(const Architecture& architecture, std::int64_t micro_batch, std::int64_t seq_len) {
  const Extent extent = extent_of(architecture);
  const auto samples = static_cast<double>(micro_batch);
  const auto tokens = static_cast<double>(seq_len);
  const double activations = samples * tokens * extent.widths * kBytesPerActivation;
  const double scores = samples * tokens * tokens * (extent.heads + 1) * kBytesPerScore;
  const bool bytes_fit = parameter_bytes(extent) + activations + scores <= kMostBytes;
  if (bytes_fit && most_operations(architecture, samples, tokens) <= kMostOperations) return {};
  if (architecture.input == InputKind::images) {
    return fail(ErrorCode::invalid_argument, "--micro-batch",
                fmt::format("{} images of {} pixels take more than can be counted; use a smaller micro-batch",
                            micro_batch, seq_len));
  }
  return fail(ErrorCode::invalid_argument, "--seq-len",
              fmt::format("{} sequences of {} tokens through {} layers take more than can be counted; use a smaller "
                          "micro-batch or shorter sequences",
                          micro_batch, seq_len, architecture.layer_count()));
}

}  // namespace ullage::model
