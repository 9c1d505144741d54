#include "model/checkpoint/scales.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/quantisation.h"

namespace ullage::model {
namespace {

std::int64_t blocks(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

// Whether `part` is one word of the dotted name, or several in a row.
bool has_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != name.npos; at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

// As a configuration's lists of what is left out mean it.
bool is_left_out(const std::string& name, const std::vector<std::string>& left_out) {
  return std::any_of(left_out.begin(), left_out.end(),
                     [&](const std::string& part) { return !part.empty() && has_part(name, part); });
}

bool is_router(const LayerKind& kind, std::size_t index) {
  const auto is = [&](const ParameterRef& ref) {
    return ref.in_layer && ref.index == static_cast<std::int32_t>(index);
  };
  // DeepSeek V3.2 leaves the indexer's weights of its heads unquantised.
  const bool weighs = kind.parameters[index].name.find("indexer.weights_proj") != std::string::npos;
  return is(kind.mixture.router.weight) || is(kind.mixture.shared_gate.weight) || weighs;
}

// Families whose attention was quantised in the slices of so many cards, each padded to whole blocks: llm-compressor,
// examples/multimodal_vision/mimo2_flash_w8a8.py; NeMo Automodel, models/mimo_v2_flash/state_dict_adapter.py, which
// takes four where the index does not say (metadata.tp_size).
std::int64_t slices_of(std::string_view family) { return family == "mimo_v2_flash" ? 4 : 1; }

struct BlockScales {
  std::array<std::int64_t, 2> block{};
  std::int64_t slices = 1;  // of the rows of attention's projections
  std::vector<std::string> left_out;

  // Of a matrix [out, in].
  std::int64_t of_matrix(std::int64_t out, std::int64_t in, std::int64_t parts = 1) const {
    const std::int64_t rows = out % parts == 0 ? parts * blocks(out / parts, block[0]) : blocks(out, block[0]);
    return multiply_saturated(rows, blocks(in, block[1]));
  }

  // Stacked experts are stored one by one, gate and up apart.
  std::int64_t of_experts(const Parameter& parameter) const {
    const std::int64_t parts = static_cast<std::int64_t>(parameter.dims[1].parts.size());
    const std::int64_t one = of_matrix(parameter.dims[1].size() / parts, parameter.dims[2].size());
    return multiply_saturated(parameter.dims[0].size() * parts, one);
  }

  // `prefix` stands in front of the names that lists of what is left out may have in full.
  std::int64_t of_kind(const LayerKind& kind, const std::string& prefix) const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
      const Parameter& parameter = kind.parameters[i];
      if (is_router(kind, i) || is_left_out(prefix + parameter.name, left_out)) continue;
      const bool expert = parameter.dims.size() == 3 && parameter.dims[0].parts[0].axis == Axis::expert;
      const bool attention = parameter.name.starts_with("self_attn.");
      if (expert) out = add_saturated(out, of_experts(parameter));
      else if (parameter.module == ModuleKind::linear && parameter.dims.size() == 2)
        out = add_saturated(
            out, of_matrix(parameter.dims[0].size(), parameter.dims[1].size(), attention ? slices : std::int64_t{1}));
    }
    return out;
  }
};

// As loaders of draft models call the layer that predicts a token more.
constexpr std::string_view kPredictorPrefix = "model.decoder.";

void add_fp8(Scales& out, const Architecture& architecture, const JsonObject& quantisation,
             const std::optional<Predictors>& predictors) {
  const Json* size = quantisation.find("weight_block_size");
  if (size == nullptr || !size->is_array() || size->size() != 2) return;
  BlockScales scales;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(*size)[i].is_number_unsigned() || (*size)[i].get<std::int64_t>() < 1) return;
    scales.block[i] = (*size)[i].get<std::int64_t>();
  }
  scales.slices = slices_of(architecture.family);
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    const auto names = quantisation.strings(key).value_or(std::vector<std::string>{});
    scales.left_out.insert(scales.left_out.end(), names.begin(), names.end());
  }
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer) {
    const std::string prefix = fmt::format("{}{}.", architecture.layer_prefix, layer);
    out.elements = add_saturated(out.elements, scales.of_kind(architecture.kind_of(layer), prefix));
  }
  if (!predictors) return;
  const std::int64_t one = scales.of_kind(predictors->layer, std::string(kPredictorPrefix));
  out.of_predictors = multiply_saturated(predictors->count, one);
}

// MXFP4: a scale for every 32 elements of the experts' weights.
std::int64_t mxfp4_scales(const Architecture& architecture) {
  constexpr std::int64_t kBlock = 32;  // OCP Microscaling Formats 1.0, 5.2
  std::int64_t out = 0;
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer) {
    for (const Parameter& parameter : architecture.kind_of(layer).parameters) {
      if (parameter.dims.size() == 3 && parameter.dims[0].parts[0].axis == Axis::expert)
        out = add_saturated(out, parameter.elements() / kBlock);
    }
  }
  return out;
}

// What compressed-tensors stores beside each packed weight: scales of groups, zero points, the two sizes of its shape.
// `where` begins the names of what the configuration is for.
std::int64_t beside_packed(const Architecture& architecture, const JsonObject& quantisation, std::string_view where) {
  const auto read = read_quantisation(quantisation);
  if (!read) return 0;
  std::int64_t out = 0;
  for (const StoredWeight& weight : stored_weights(architecture, *read, DType::bf16)) {
    if (!weight.name.starts_with(where)) continue;
    for (std::size_t i = 1; i < weight.parts.size(); ++i)
      out = add_saturated(out, multiply_saturated(weight.copies, weight.parts[i].elements));
  }
  return out;
}

// Whether a wrapper's text model alone is quantised.
bool is_of_text(const JsonObject& config) {
  const auto text = config.object("text_config");
  return !config.has("quantization_config") && text && text->has("quantization_config");
}

}  // namespace

Scales scales_of(const Architecture& architecture, const JsonObject& config,
                 const std::optional<Predictors>& predictors) {
  Scales out;
  const bool of_text = is_of_text(config);
  const auto whole = of_text ? config.object("text_config") : Expected<JsonObject>(config);
  const auto quantisation = whole ? whole->object("quantization_config") : whole;
  if (!quantisation || architecture.layers.empty()) return out;
  const std::string method = quantisation->string("quant_method", "").value_or("");
  if (method == "fp8") {
    out.source = "transformers, quantizers/quantizer_finegrained_fp8.py";
    add_fp8(out, architecture, *quantisation, predictors);
  } else if (method == "mxfp4") {
    out.source = "OCP Microscaling Formats 1.0";
    out.elements = mxfp4_scales(architecture);
  } else if (method == "compressed-tensors") {
    out.source = "compressed-tensors, compressors/";
    out.elements = beside_packed(architecture, *quantisation, of_text ? architecture.layer_prefix : "");
  }
  return out;
}

}  // namespace ullage::model
