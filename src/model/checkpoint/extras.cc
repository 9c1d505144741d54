#include "model/checkpoint/extras.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/bytes.h"

namespace ullage::model {
namespace {

std::int64_t elements_of(const Buffer& buffer) {
  std::int64_t out = 1;
  for (const std::int64_t size : buffer.sizes) out = multiply_saturated(out, size);
  return out;
}

std::int64_t persistent_elements(const std::vector<Buffer>& buffers) {
  std::int64_t out = 0;
  for (const Buffer& buffer : buffers) {
    if (buffer.persistent) out = add_saturated(out, elements_of(buffer));
  }
  return out;
}

std::int64_t persistent_elements(const Architecture& architecture) {
  std::int64_t out = persistent_elements(architecture.buffers);
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer)
    out = add_saturated(out, persistent_elements(architecture.kind_of(layer).buffers));
  return out;
}

std::int64_t elements_of(const LayerKind& kind) {
  std::int64_t out = persistent_elements(kind.buffers);
  for (const Parameter& parameter : kind.parameters) out = add_saturated(out, parameter.elements());
  return out;
}

// --- layers that predict further tokens ------------------------------------------------------------------------------

// What such a layer has besides a layer of the last kind: norms, a projection of two hidden states to one, and
// perhaps embeddings and a head of its own.
struct Predictor {
  std::string_view family;
  std::int64_t norms = 3;
  bool has_vocabulary = false;
  std::int64_t unsaid = 0;  // how many there are where the configuration does not say
  std::string_view source;
};

constexpr std::string_view kDeepSeekSource = "README_WEIGHTS.md of the published weights";
constexpr std::array kPredictors{
    Predictor{"deepseek_v3", 3, true, 0, kDeepSeekSource},
    Predictor{"deepseek_v32", 3, true, 0, kDeepSeekSource},
    Predictor{"glm4_moe", 3, true, 0, "vllm/model_executor/models/glm4_moe_mtp.py"},
    Predictor{"qwen3_next", 3, false, 1, "vllm/model_executor/models/qwen3_next_mtp.py"},
};

const Predictor* predictor_of(const Architecture& architecture) {
  const auto found = std::find_if(kPredictors.begin(), kPredictors.end(),
                                  [&](const Predictor& row) { return row.family == architecture.family; });
  return found == kPredictors.end() || architecture.layers.empty() ? nullptr : &*found;
}

const LayerKind& last_kind(const Architecture& architecture) {
  return architecture.kind_of(architecture.layer_count() - 1);
}

std::int64_t said_predictors(const JsonObject& config) {
  return config.integer("num_nextn_predict_layers", 0, 0, 64).value_or(0);
}

std::int64_t elements_of(const Predictor& predictor, const Architecture& architecture) {
  const std::int64_t hidden = architecture.hidden;
  std::int64_t out = add_saturated(elements_of(last_kind(architecture)), predictor.norms * hidden);
  out = add_saturated(out, multiply_saturated(2 * hidden, hidden));
  if (!predictor.has_vocabulary) return out;
  return add_saturated(out, multiply_saturated(2 * architecture.vocab, hidden));
}

// --- scales ----------------------------------------------------------------------------------------------------------

std::int64_t blocks(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

// The part of a name that a configuration's modules_to_not_convert means.
bool is_left_out(const std::string& name, const std::vector<std::string>& left_out) {
  return std::any_of(left_out.begin(), left_out.end(), [&](const std::string& part) {
    return !part.empty() && ("." + name + ".").find("." + part + ".") != std::string::npos;
  });
}

bool is_router(const LayerKind& kind, std::size_t index) {
  const auto is = [&](const ParameterRef& ref) {
    return ref.in_layer && ref.index == static_cast<std::int32_t>(index);
  };
  // DeepSeek V3.2 leaves the indexer's weights of its heads unquantised.
  const bool weighs = kind.parameters[index].name.find("indexer.weights_proj") != std::string::npos;
  return is(kind.mixture.router.weight) || is(kind.mixture.shared_gate.weight) || weighs;
}

struct BlockScales {
  std::array<std::int64_t, 2> block{};
  std::vector<std::string> left_out;

  // Of a matrix [out, in].
  std::int64_t of_matrix(std::int64_t out, std::int64_t in) const {
    return multiply_saturated(blocks(out, block[0]), blocks(in, block[1]));
  }

  // Stacked experts are stored one by one, gate and up apart.
  std::int64_t of_experts(const Parameter& parameter) const {
    const std::int64_t parts = static_cast<std::int64_t>(parameter.dims[1].parts.size());
    const std::int64_t one = of_matrix(parameter.dims[1].size() / parts, parameter.dims[2].size());
    return multiply_saturated(parameter.dims[0].size() * parts, one);
  }

  std::int64_t of_kind(const LayerKind& kind) const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
      const Parameter& parameter = kind.parameters[i];
      if (is_router(kind, i) || is_left_out(parameter.name, left_out)) continue;
      const bool expert = parameter.dims.size() == 3 && parameter.dims[0].parts[0].axis == Axis::expert;
      if (expert) out = add_saturated(out, of_experts(parameter));
      else if (parameter.module == ModuleKind::linear && parameter.dims.size() == 2)
        out = add_saturated(out, of_matrix(parameter.dims[0].size(), parameter.dims[1].size()));
    }
    return out;
  }
};

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

std::int64_t fp8_scales(const Architecture& architecture, const JsonObject& quantisation, std::int64_t predictors) {
  const Json* size = quantisation.find("weight_block_size");
  if (size == nullptr || !size->is_array() || size->size() != 2) return 0;
  BlockScales scales;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(*size)[i].is_number_unsigned() || (*size)[i].get<std::int64_t>() < 1) return 0;
    scales.block[i] = (*size)[i].get<std::int64_t>();
  }
  scales.left_out = quantisation.strings("modules_to_not_convert").value_or(std::vector<std::string>{});
  std::int64_t out = 0;
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer)
    out = add_saturated(out, scales.of_kind(architecture.kind_of(layer)));
  return add_saturated(out, multiply_saturated(predictors, scales.of_kind(last_kind(architecture))));
}

StoredExtra scales_of(const Architecture& architecture, const JsonObject& config, std::int64_t predictors) {
  StoredExtra out{Extra::scales, true, 0, "transformers, quantizers/quantizer_finegrained_fp8.py"};
  const auto quantisation = config.object("quantization_config");
  if (!quantisation || architecture.layers.empty()) return out;
  const std::string method = quantisation->string("quant_method", "").value_or("");
  if (method == "fp8") out.elements = fp8_scales(architecture, *quantisation, predictors);
  if (method != "mxfp4") return out;
  return {Extra::scales, true, mxfp4_scales(architecture), "OCP Microscaling Formats 1.0"};
}

// --- what older releases stored --------------------------------------------------------------------------------------

bool has_tied_head(const Architecture& architecture) {
  const ParameterRef& head = architecture.head.weight;
  return head && !head.in_layer && architecture.parameters[static_cast<std::size_t>(head.index)].tied_to.has_value();
}

// Families whose classes once registered frequencies (and GPT-NeoX's masks, too) in every layer's attention.
StoredExtra frequencies_of(const Architecture& architecture) {
  StoredExtra out{Extra::frequencies, false, 0, "transformers 4.28, models/llama and models/gpt_neox"};
  constexpr std::array<std::string_view, 2> kFamilies{"llama", "gpt_neox"};
  if (std::find(kFamilies.begin(), kFamilies.end(), architecture.family) != kFamilies.end())
    out.elements = architecture.layer_count() * (architecture.rotary.dim / 2);
  return out;
}

StoredExtra masks_of(const Architecture& architecture) {
  StoredExtra out{Extra::masks, false, 0, "transformers 4.28, models/gpt_neox"};
  if (architecture.family == "gpt_neox")
    out.elements = multiply_saturated(architecture.layer_count(),
                                      multiply_saturated(architecture.max_positions, architecture.max_positions));
  return out;
}

}  // namespace

std::vector<StoredExtra> stored_extras(const Architecture& architecture, const JsonObject& config) {
  std::vector<StoredExtra> out;
  const auto add = [&](StoredExtra extra) {
    if (extra.elements > 0) out.push_back(extra);
  };
  add({Extra::buffers, true, persistent_elements(architecture), "the class's persistent buffers"});
  const Predictor* predictor = predictor_of(architecture);
  const std::int64_t said = predictor == nullptr ? 0 : said_predictors(config);
  if (predictor != nullptr) {
    const std::int64_t count = said > 0 ? said : predictor->unsaid;
    add({Extra::predictors, said > 0, multiply_saturated(count, elements_of(*predictor, architecture)),
         predictor->source});
  }
  add(scales_of(architecture, config, said));
  if (has_tied_head(architecture))
    add({Extra::tied_head, false, multiply_saturated(architecture.vocab, architecture.hidden),
         "checkpoints saved without regard to the sharing"});
  add(frequencies_of(architecture));
  add(masks_of(architecture));
  return out;
}

}  // namespace ullage::model
