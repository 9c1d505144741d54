// What engines read in a model's configuration beside its architecture, wherever it stands: wrappers nest it.
#pragma once

#include <optional>

#include "base/dtype.h"
#include "base/json.h"

namespace ullage::engines::serving {

// dtype, or torch_dtype as older files call it: the type of the weights.
std::optional<DType> configured_dtype(const Json& config);

// The factor by which positions are stretched beyond those of pretraining; 1: they are not.
double configured_stretch(const Json& config);

}  // namespace ullage::engines::serving
