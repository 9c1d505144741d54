// The forward pass and the configuration of glm4_moe.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_glm4_moe(const JsonObject& config);
Output forward_glm4_moe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
