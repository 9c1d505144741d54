// hf_quant_config.json: where NVIDIA's tools say how weights are quantised whose config.json does not.
#pragma once

#include "base/json.h"

namespace ullage::cli {

inline constexpr const char* kQuantisationFile = "hf_quant_config.json";

// The same as a quantization_config; null where the file says nothing of it. A way that is not modelled keeps its name,
// by which whoever reads the result refuses it.
// Source: NVIDIA/Model-Optimizer, modelopt/torch/export/quant_utils.py;
// vllm/model_executor/layers/quantization/modelopt.py.
Json quantisation_in_file(const Json& file);

}  // namespace ullage::cli
