#include "engines/vllm/weights.h"

#include <algorithm>

#include "base/bytes.h"
#include "engines/vllm/arithmetic.h"

namespace ullage::engines::vllm {
namespace {

constexpr std::int64_t kVocabularyPadding = 64;
// Rows of positions for a model that also sees, for every text position.
// Source: rotary_embedding/mrope.py (cache_max_position_num).
constexpr std::int64_t kRowsBySection = 4;

// What decides how a parameter is cut besides its axes.
struct Cutting {
  bool of_experts = false;
  bool of_state = false;  // of a layer that keeps a state: its channels are cut like heads
};

std::int64_t local_part(const model::AxisPart& part, const Options& options, Cutting cutting) {
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
      if (!cutting.of_experts) return divide_up(part.count * part.unit, tp);
      return options.enable_expert_parallel ? part.count * part.unit
                                            : divide_up(part.count * part.unit, options.expert_ranks());
    case model::Axis::expert:
      return cutting.of_experts && options.enable_expert_parallel
                 ? divide_up(part.count * part.unit, options.expert_ranks())
                 : part.count * part.unit;
    case model::Axis::channels:
      return cutting.of_state ? divide_up(part.count * part.unit, tp) : part.count * part.unit;
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

// Routers, which are linear layers, know all experts.
bool is_of_experts(const model::Parameter& parameter) {
  return parameter.module != model::ModuleKind::linear && has_axis(parameter, model::Axis::expert);
}

std::int64_t rotary_rows(const model::Rotary& rotary, double stretch) {
  const auto stretched = [&](std::int64_t positions) {
    return static_cast<std::int64_t>(static_cast<double>(positions) * stretch);
  };
  if (rotary.type == "linear" || rotary.type == "dynamic") return stretched(rotary.max_positions);
  if (rotary.type == "yarn") return stretched(rotary.original_max_positions);
  if (rotary.type == "longrope") return rotary.max_positions + rotary.original_max_positions;
  const bool sees = rotary.sections[0] > 0;
  return sees ? kRowsBySection * rotary.max_positions : rotary.max_positions;
}

std::int64_t rotary_table_bytes(const model::Rotary& rotary, const Options& options) {
  return rotary.dim * rotary_rows(rotary, options.rotary_stretch) * size_of(options.dtype);
}

// A parameter outside of the layers, by its place among them.
bool is_held(const model::Architecture& architecture, const model::Parameter& parameter, std::size_t at,
             const Stage& stage) {
  const bool in_front = at < architecture.layers_at;
  if (!(in_front ? stage.embeds : stage.heads)) return false;
  // A tied head is a copy of its own on the last stage.
  return !(parameter.tied_to && stage.embeds);
}

std::int64_t held_elements(const model::Parameter& parameter, const Options& options, Cutting cutting) {
  std::int64_t out = 1;
  for (const model::Dimension& dim : parameter.dims) {
    std::int64_t size = 0;
    for (const model::AxisPart& part : dim.parts) size += local_part(part, options, cutting);
    out *= size;
  }
  return out;
}

Cutting cutting_of(const model::Parameter& parameter, const model::LayerKind& kind) {
  return {is_of_experts(parameter), kind.recurrent.has_value()};
}

template <class Visit>
void for_each_held(const model::Architecture& architecture, const Stage& stage, Visit visit) {
  for (std::size_t i = 0; i < architecture.parameters.size(); ++i) {
    const model::Parameter& parameter = architecture.parameters[i];
    if (is_held(architecture, parameter, i, stage)) visit(parameter, Cutting{is_of_experts(parameter)});
  }
  const auto visit_layers = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t layer = first; layer < last; ++layer) {
      const model::LayerKind& kind = architecture.kind_of(layer);
      for (const model::Parameter& parameter : kind.parameters) visit(parameter, cutting_of(parameter, kind));
    }
  };
  if (stage.embeds) visit_layers(0, architecture.encoder_layers);
  visit_layers(stage.first, stage.last);
}

// Of one layer: two thin matrices for each linear one, cut as that is: the second by rows of the output, or the first
// by columns of the input. Source: vllm/lora/layers (ColumnParallelLinearWithLoRA, RowParallelLinearWithLoRA).
std::int64_t lora_elements(const model::LayerKind& kind, const Options& options) {
  std::int64_t out = 0;
  for (const model::Parameter& parameter : kind.parameters) {
    if (parameter.module != model::ModuleKind::linear || parameter.dims.size() != 2) continue;
    for (const model::Dimension& dim : parameter.dims) {
      for (const model::AxisPart& part : dim.parts) out += local_part(part, options, {});
    }
  }
  return out;
}

std::int64_t lora_bytes(const model::Architecture& architecture, const Options& options, const Stage& stage) {
  if (options.lora.slots == 0) return 0;
  std::int64_t out = 0;
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer)
    out += lora_elements(architecture.kind_of(layer), options);
  return out * options.lora.slots * options.lora.rank * size_of(options.dtype);
}

// A drafting layer is one of the last kind that attends, with a projection from two hidden vectors to one in front.
std::int64_t draft_bytes(const model::Architecture& architecture, const Options& options, const Stage& stage) {
  if (options.draft_layers == 0 || !stage.heads) return 0;
  std::int64_t elements = 2 * architecture.hidden * architecture.hidden;
  for (std::int64_t layer = architecture.layer_count() - 1; layer >= 0; --layer) {
    const model::LayerKind& kind = architecture.kind_of(layer);
    if (kind.recurrent) continue;
    for (const model::Parameter& parameter : kind.parameters)
      elements += held_elements(parameter, options, cutting_of(parameter, kind));
    break;
  }
  return elements * options.draft_layers * size_of(options.dtype);
}

std::int64_t stored_bytes(const model::Architecture& held, const model::Quantisation& quantisation, DType dtype) {
  std::int64_t out = 0;
  for (const model::StoredWeight& weight : model::stored_weights(held, quantisation, dtype)) {
    if (weight.elements > 0) out = add_saturated(out, multiply_saturated(weight.copies, weight.bytes()));
  }
  return out;
}

// Experts in MXFP4 are padded for their kernels. Source: vllm/model_executor/layers/quantization/mxfp4.py (Marlin).
constexpr std::int64_t kPaddedExpertHidden = 256;
constexpr std::int64_t kPaddedExpertFfn = 128;

// Gate and up that lie in turns are padded each.
std::int64_t padded(const model::AxisPart& part, std::int64_t count) {
  if (part.axis == model::Axis::hidden) return round_up(count, kPaddedExpertHidden);
  return part.axis == model::Axis::ffn ? round_up(count, kPaddedExpertFfn * part.unit) : count;
}

void cut(model::Parameter& parameter, const Options& options, Cutting cutting, bool pads_experts) {
  for (model::Dimension& dim : parameter.dims) {
    for (model::AxisPart& part : dim.parts) {
      part.count = local_part(part, options, cutting);
      if (cutting.of_experts && pads_experts) part.count = padded(part, part.count);
      part.unit = 1;
    }
  }
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

bool has_mxfp4_experts(const model::Architecture& architecture, const model::Quantisation* quantisation) {
  if (quantisation == nullptr) return false;
  const bool packs = std::any_of(quantisation->rules.begin(), quantisation->rules.end(),
                                 [](const auto& rule) { return rule.scheme.format == model::WeightFormat::mxfp4; });
  return packs && std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                              [](const model::LayerKind& kind) { return kind.mixture.experts.count > 0; });
}

model::Architecture shard(const model::Architecture& architecture, const Options& options, const Stage& stage,
                          bool pads_experts) {
  model::Architecture out = architecture;
  for (std::size_t i = 0; i < out.parameters.size(); ++i) {
    model::Parameter& parameter = out.parameters[i];
    cut(parameter, options, {is_of_experts(parameter)}, pads_experts);
    if (!is_held(architecture, architecture.parameters[i], i, stage)) parameter.dims = {model::Dimension{}};
    else parameter.tied_to.reset();
  }
  for (model::LayerKind& kind : out.kinds) {
    for (model::Parameter& parameter : kind.parameters)
      cut(parameter, options, cutting_of(parameter, kind), pads_experts);
    model::Experts& experts = kind.mixture.experts;
    if (options.enable_expert_parallel) experts.count = divide_up(experts.count, options.expert_ranks());
  }
  const auto& layers = architecture.layers;
  if (!stage.embeds) out.encoder_layers = 0;
  out.layers.assign(layers.begin(), layers.begin() + out.encoder_layers);
  out.layers.insert(out.layers.end(), layers.begin() + stage.first, layers.begin() + stage.last);
  return out;
}

RankWeights rank_weights(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const model::Quantisation* quantisation) {
  RankWeights out;
  if (quantisation != nullptr) {
    out.parameters_bytes =
        stored_bytes(shard(architecture, options, stage, has_mxfp4_experts(architecture, quantisation)), *quantisation,
                     options.dtype);
  } else {
    for_each_held(architecture, stage, [&](const model::Parameter& parameter, Cutting cutting) {
      out.parameters_bytes += held_elements(parameter, options, cutting) * size_of(options.dtype);
    });
  }
  out.offloaded_bytes = std::min(options.cpu_offload_bytes, out.parameters_bytes);
  out.parameters_bytes -= out.offloaded_bytes;
  out.lora_bytes = lora_bytes(architecture, options, stage);
  out.draft_bytes = draft_bytes(architecture, options, stage);
  if (architecture.rotary.dim > 0) out.rotary_bytes = rotary_table_bytes(architecture.rotary, options);
  if (architecture.local_rotary.dim > 0) out.rotary_bytes += rotary_table_bytes(architecture.local_rotary, options);
  return out;
}

}  // namespace ullage::engines::vllm
