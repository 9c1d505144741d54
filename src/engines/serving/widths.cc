#include "engines/serving/widths.h"

#include <algorithm>

#include "engines/serving/arithmetic.h"

namespace ullage::engines::serving {
namespace {

std::int64_t width_of(const std::vector<model::Parameter>& parameters, model::ParameterRef weight, model::Axis axis) {
  if (!weight) return 0;
  for (const model::Dimension& dim : parameters[static_cast<std::size_t>(weight.index)].dims) {
    for (const model::AxisPart& part : dim.parts) {
      if (part.axis == axis) return part.count * part.unit;
    }
  }
  return 0;
}

}  // namespace

std::int64_t dense_width(const model::LayerKind& kind) {
  const model::Mlp& mlp = kind.mixture.experts.count > 0 ? kind.mixture.shared : kind.mlp;
  return width_of(kind.parameters, mlp.down.weight, model::Axis::ffn);
}

std::int64_t expert_workspace(const model::LayerKind& kind, std::int64_t hidden, std::int64_t tokens,
                              std::int64_t ranks, std::int64_t element_bytes) {
  if (kind.mixture.experts.count == 0) return 0;
  const std::int64_t whole = width_of(kind.parameters, kind.mixture.experts.down, model::Axis::ffn);
  const std::int64_t ffn = divide_up(whole, ranks);
  const std::int64_t rows = tokens * kind.mixture.top_k;
  return rows * (std::max(2 * ffn, hidden) + ffn) * element_bytes;
}

}  // namespace ullage::engines::serving
