#include "engines/serving/rank_weights.h"

#include <algorithm>

#include "base/bytes.h"
#include "engines/serving/arithmetic.h"

namespace ullage::engines::serving {
namespace {

constexpr std::int64_t kVocabularyPadding = 64;
// Rows of positions for a model that also sees, for every text position.
// Source: rotary_embedding/mrope.py (cache_max_position_num).
constexpr std::int64_t kRowsBySection = 4;

// What decides how a parameter is cut besides its axes.
struct Cutting {
  bool of_experts = false;
  bool of_state = false;  // of a layer that keeps a state: its channels are cut like heads
  bool in_front = false;  // of the layers
};

std::int64_t held_experts(std::int64_t experts, const Shares& shares) {
  const std::int64_t own = divide_up(experts, shares.experts);
  return shares.most_experts ? std::min(own, *shares.most_experts) : own;
}

std::int64_t local_part(const model::AxisPart& part, const Shares& shares, Cutting cutting) {
  switch (part.axis) {
    case model::Axis::vocab: {
      const std::int64_t rows = divide_up(part.count * part.unit, kVocabularyPadding) * kVocabularyPadding;
      return divide_up(rows, cutting.in_front ? shares.embedding : shares.vocabulary);
    }
    case model::Axis::heads: return divide_up(part.count, shares.heads) * part.unit;
    case model::Axis::kv_heads: return std::max<std::int64_t>(1, part.count / shares.heads) * part.unit;
    // Experts are cut like any feed-forward, or each rank has whole ones.
    case model::Axis::ffn:
      return divide_up(part.count * part.unit, cutting.of_experts ? shares.expert_ffn : shares.ffn);
    case model::Axis::expert:
      return cutting.of_experts ? held_experts(part.count * part.unit, shares) : part.count * part.unit;
    case model::Axis::channels:
      return cutting.of_state ? divide_up(part.count * part.unit, shares.heads) : part.count * part.unit;
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

std::int64_t rotary_table_bytes(const model::Rotary& rotary, const Shares& shares) {
  return rotary.dim * rotary_rows(rotary, shares.rotary_stretch) * size_of(shares.rotary_dtype);
}

// Mamba 2: groups that several ranks share are copied to each of them, in the projection and in the convolution.
// Source: vllm/model_executor/layers/mamba/mamba_mixer2.py (extra_groups_for_head_shards).
std::int64_t copied_group_elements(const model::Architecture& architecture, const model::LayerKind& kind,
                                   const Shares& shares) {
  if (!kind.recurrent || kind.recurrent->kind != model::RecurrentKind::mamba2) return 0;
  const model::Recurrent& state = *kind.recurrent;
  const std::int64_t tp = shares.heads;
  const std::int64_t groups = state.groups > 0 ? state.groups : state.heads;
  if (groups % tp == 0) return 0;
  // Of B and C each: a rank has one whole group in place of its share of all.
  const std::int64_t rows = 2 * (state.columns - state.columns * groups / tp);
  return std::max<std::int64_t>(0, rows) * (architecture.hidden + state.conv_kernel + 1);
}

// A parameter outside of the layers, by its place among them.
bool is_held(const model::Architecture& architecture, const model::Parameter& parameter, std::size_t at,
             const Stage& stage) {
  const bool in_front = at < architecture.layers_at;
  if (!(in_front ? stage.embeds : stage.heads)) return false;
  // A tied head is a copy of its own on the last stage.
  return !(parameter.tied_to && stage.embeds);
}

std::int64_t held_elements(const model::Parameter& parameter, const Shares& shares, Cutting cutting) {
  std::int64_t out = 1;
  for (const model::Dimension& dim : parameter.dims) {
    std::int64_t size = 0;
    for (const model::AxisPart& part : dim.parts) size += local_part(part, shares, cutting);
    out *= size;
  }
  return out;
}

// Of a parameter outside of the layers, by its place among them.
Cutting cutting_outside(const model::Architecture& architecture, const model::Parameter& parameter, std::size_t at) {
  return {is_of_experts(parameter), false, at < architecture.layers_at};
}

Cutting cutting_of(const model::Parameter& parameter, const model::LayerKind& kind) {
  return {is_of_experts(parameter), kind.recurrent.has_value(), false};
}

template <class Visit>
void for_each_held(const model::Architecture& architecture, const Stage& stage, Visit visit) {
  for (std::size_t i = 0; i < architecture.parameters.size(); ++i) {
    const model::Parameter& parameter = architecture.parameters[i];
    if (is_held(architecture, parameter, i, stage)) visit(parameter, cutting_outside(architecture, parameter, i));
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
std::int64_t lora_elements(const model::LayerKind& kind, const Shares& shares) {
  std::int64_t out = 0;
  for (const model::Parameter& parameter : kind.parameters) {
    if (parameter.module != model::ModuleKind::linear || parameter.dims.size() != 2) continue;
    for (const model::Dimension& dim : parameter.dims) {
      for (const model::AxisPart& part : dim.parts) out += local_part(part, shares, {});
    }
  }
  return out;
}

std::int64_t lora_bytes(const model::Architecture& architecture, const Shares& shares, const Stage& stage) {
  if (shares.lora.slots == 0) return 0;
  std::int64_t out = 0;
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer)
    out += lora_elements(architecture.kind_of(layer), shares);
  return out * shares.lora.slots * shares.lora.rank * size_of(shares.dtype);
}

// A drafting layer is one of the last kind that attends, with a projection from two hidden vectors to one in front.
std::int64_t draft_bytes(const model::Architecture& architecture, const Shares& shares, const Stage& stage) {
  if (shares.draft_layers == 0 || !stage.heads) return 0;
  std::int64_t elements = 2 * architecture.hidden * architecture.hidden;
  for (std::int64_t layer = architecture.layer_count() - 1; layer >= 0; --layer) {
    const model::LayerKind& kind = architecture.kind_of(layer);
    if (kind.recurrent) continue;
    for (const model::Parameter& parameter : kind.parameters)
      elements += held_elements(parameter, shares, cutting_of(parameter, kind));
    break;
  }
  return elements * shares.draft_layers * size_of(shares.dtype);
}

// The two halves of the projection from latent vectors to the heads' keys and values, as matrices of each head in the
// model's type. Source: sglang/srt/models/deepseek_v2.py (post_load_weights: w_kc, w_vc).
std::int64_t absorbed_bytes(const model::Architecture& architecture, const Shares& shares, const Stage& stage) {
  if (!shares.absorbs_latent) return 0;
  std::int64_t elements = 0;
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer) {
    const model::Attention& attention = architecture.kind_of(layer).attention;
    const model::Latent& latent = attention.latent;
    elements += latent.kv_rank * divide_up(attention.heads, shares.heads) * (latent.nope_dim + latent.value_dim);
  }
  return elements * size_of(shares.dtype);
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

void cut(model::Parameter& parameter, const Shares& shares, Cutting cutting, bool pads_experts) {
  for (model::Dimension& dim : parameter.dims) {
    for (model::AxisPart& part : dim.parts) {
      part.count = local_part(part, shares, cutting);
      if (cutting.of_experts && pads_experts) part.count = padded(part, part.count);
      part.unit = 1;
    }
  }
}

}  // namespace

std::vector<Stage> pipeline_stages(std::int64_t layers, std::int64_t stages, LayersLeft left_to) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), layers / stages);
  const std::int64_t behind = left_to == LayersLeft::before_the_last ? 2 : 1;
  for (std::int64_t left = layers % stages, stage = stages - behind; left > 0 && stage >= 0; --left, --stage)
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

model::Architecture shard(const model::Architecture& architecture, const Shares& shares, const Stage& stage,
                          bool pads_experts) {
  model::Architecture out = architecture;
  for (std::size_t i = 0; i < out.parameters.size(); ++i) {
    model::Parameter& parameter = out.parameters[i];
    cut(parameter, shares, cutting_outside(architecture, parameter, i), pads_experts);
    if (!is_held(architecture, architecture.parameters[i], i, stage)) parameter.dims = {model::Dimension{}};
    else parameter.tied_to.reset();
  }
  for (model::LayerKind& kind : out.kinds) {
    for (model::Parameter& parameter : kind.parameters)
      cut(parameter, shares, cutting_of(parameter, kind), pads_experts);
    model::Experts& experts = kind.mixture.experts;
    if (experts.count > 0) experts.count = held_experts(experts.count, shares);
  }
  const auto& layers = architecture.layers;
  if (!stage.embeds) out.encoder_layers = 0;
  out.layers.assign(layers.begin(), layers.begin() + out.encoder_layers);
  out.layers.insert(out.layers.end(), layers.begin() + stage.first, layers.begin() + stage.last);
  return out;
}

RankWeights rank_weights(const model::Architecture& architecture, const Shares& shares, const Stage& stage,
                         const model::Quantisation* quantisation) {
  RankWeights out;
  if (quantisation != nullptr) {
    out.parameters_bytes = stored_bytes(
        shard(architecture, shares, stage, has_mxfp4_experts(architecture, quantisation)), *quantisation, shares.dtype);
  } else {
    for_each_held(architecture, stage, [&](const model::Parameter& parameter, Cutting cutting) {
      out.parameters_bytes += held_elements(parameter, shares, cutting) * size_of(shares.dtype);
    });
  }
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer) {
    out.parameters_bytes +=
        copied_group_elements(architecture, architecture.kind_of(layer), shares) * size_of(shares.dtype);
  }
  out.offloaded_bytes = std::min(shares.cpu_offload_bytes, out.parameters_bytes);
  out.parameters_bytes -= out.offloaded_bytes;
  out.lora_bytes = lora_bytes(architecture, shares, stage);
  out.draft_bytes = draft_bytes(architecture, shares, stage);
  out.absorbed_bytes = absorbed_bytes(architecture, shares, stage);
  if (architecture.rotary.dim > 0) out.rotary_bytes = rotary_table_bytes(architecture.rotary, shares);
  if (shares.rotary_tables_by_layer) out.rotary_bytes *= stage.last - stage.first;
  if (architecture.local_rotary.dim > 0) out.rotary_bytes += rotary_table_bytes(architecture.local_rotary, shares);
  return out;
}

}  // namespace ullage::engines::serving
