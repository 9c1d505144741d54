// The forward pass and the configuration of GLM-4 (0414).
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_glm4(const JsonObject& config);
Output forward_glm4(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
