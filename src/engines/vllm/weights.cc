#include "engines/vllm/weights.h"

#include <algorithm>

#include "engines/vllm/arithmetic.h"

namespace ullage::engines::vllm {
namespace {

constexpr std::int64_t kVocabularyPadding = 64;

std::int64_t local_part(const model::AxisPart& part, const Options& options, bool of_experts) {
  const std::int64_t tp = options.tensor_parallel_size;
  switch (part.axis) {
    case model::Axis::vocab: {
      const std::int64_t rows = divide_up(part.count * part.unit, kVocabularyPadding) * kVocabularyPadding;
      return divide_up(rows, tp);
    }
    case model::Axis::heads: return divide_up(part.count, tp) * part.unit;
    case model::Axis::kv_heads: return std::max<std::int64_t>(1, part.count / tp) * part.unit;
    // Experts are cut like any feed-forward, or each rank has whole ones.
    case model::Axis::ffn:
      return of_experts && options.enable_expert_parallel ? part.count * part.unit
                                                          : divide_up(part.count * part.unit, tp);
    case model::Axis::expert:
      return options.enable_expert_parallel ? divide_up(part.count * part.unit, tp) : part.count * part.unit;
    default: return part.count * part.unit;
  }
}

bool has_axis(const model::Parameter& parameter, model::Axis axis) {
  for (const model::Dimension& dim : parameter.dims) {
    for (const model::AxisPart& part : dim.parts) {
      if (part.axis == axis) return true;
    }
  }
  return false;
}

std::int64_t rotary_table_bytes(const model::Rotary& rotary, const Options& options) {
  return rotary.dim * rotary.max_positions * size_of(options.dtype);
}

}  // namespace

std::vector<Stage> pipeline_stages(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), layers / stages);
  for (std::int64_t left = layers % stages, stage = stages - 2; left > 0 && stage >= 0; --left, --stage)
    ++counts[static_cast<std::size_t>(stage)];
  std::vector<Stage> out;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    out.push_back({first, first + count, first == 0, false});
    first += count;
  }
  out.back().heads = true;
  return out;
}

StoredBytes unquantised(const Options& options) {
  return [width = size_of(options.dtype)](const model::Parameter&, std::string_view, std::int64_t elements) {
    return elements * width;
  };
}

std::int64_t local_elements(const model::Parameter& parameter, const Options& options) {
  const bool of_experts = has_axis(parameter, model::Axis::expert);
  std::int64_t out = 1;
  for (const model::Dimension& dim : parameter.dims) {
    std::int64_t size = 0;
    for (const model::AxisPart& part : dim.parts) size += local_part(part, options, of_experts);
    out *= size;
  }
  return out;
}

RankWeights rank_weights(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const StoredBytes& stored) {
  RankWeights out;
  std::size_t outside = 0;
  model::for_each_parameter(architecture, [&](const model::Parameter& parameter, std::string_view name, int layer) {
    if (layer >= 0) {
      if (layer < stage.first || layer >= stage.last) return;
    } else {
      // In front of the layers and behind them; a tied head is a copy of its own on the last stage.
      const bool in_front = outside++ < architecture.layers_at;
      const bool own = in_front ? stage.embeds : stage.heads;
      if (!own) return;
      if (parameter.tied_to && stage.embeds) return;
    }
    out.parameters_bytes += stored(parameter, name, local_elements(parameter, options));
  });
  if (architecture.rotary.dim > 0) out.rotary_bytes = rotary_table_bytes(architecture.rotary, options);
  if (architecture.local_rotary.dim > 0) out.rotary_bytes += rotary_table_bytes(architecture.local_rotary, options);
  return out;
}

}  // namespace ullage::engines::vllm
