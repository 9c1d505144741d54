// The forward passes and the configurations of Qwen's mixtures of experts.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_qwen2_moe(const JsonObject& config);
Output forward_qwen2_moe(Modules& modules, const Architecture& architecture, Batch batch);
Expected<Architecture> build_qwen3_moe(const JsonObject& config);
Output forward_qwen3_moe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
