// The forward passes and the configurations of deepseek_v2 and deepseek_v3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_deepseek_v2(const JsonObject& config);
Output forward_deepseek_v2(Modules& modules, const Architecture& architecture, Batch batch);
Expected<Architecture> build_deepseek_v3(const JsonObject& config);
// A smaller relative in GLM's family, with the forward pass of deepseek_v3.
Expected<Architecture> build_glm4_moe_lite(const JsonObject& config);
Output forward_deepseek_v3(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
