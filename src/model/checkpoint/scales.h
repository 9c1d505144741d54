// Scales that checkpoints of quantised weights store beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "model/architecture.h"
#include "model/checkpoint/predictors.h"

namespace ullage::model {

struct Scales {
  std::int64_t elements = 0;       // beside the model's own weights
  std::int64_t of_predictors = 0;  // beside those of all layers that predict further tokens
  std::string_view source;
};

// As quantization_config says, the wrapper's or its text model's; methods that pack weights into other numbers of
// elements, and those that are not modelled, have none here.
Scales scales_of(const Architecture& architecture, const JsonObject& config,
                 const std::optional<Predictors>& predictors);

}  // namespace ullage::model
