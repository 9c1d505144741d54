// Outlines with multi-head latent attention: DeepSeek V3.2 and V4, GLM 5, Kimi K2, MiniCPM 3, and the first DeepSeek
// MoE.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

Expected<Architecture> outline_deepseek(const JsonObject& config);
Expected<Architecture> outline_deepseek_v32(const JsonObject& config);
Expected<Architecture> outline_deepseek_v4(const JsonObject& config);
Expected<Architecture> outline_glm_moe_dsa(const JsonObject& config);
Expected<Architecture> outline_kimi_k2(const JsonObject& config);
Expected<Architecture> outline_minicpm3(const JsonObject& config);

}  // namespace ullage::model
