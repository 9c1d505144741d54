// Qwen3-VL: what earlier blocks of the tower see is added behind the text model's first layers, too.
#pragma once

#include "model/families/qwen_tower.h"

namespace ullage::model {

Expected<Architecture> build_qwen3_vl(const JsonObject& config);
Output forward_qwen3_vl(Modules& modules, const Architecture& architecture, Batch batch);
// With a mixture of experts for text.
Expected<Architecture> build_qwen3_vl_moe(const JsonObject& config);
Output forward_qwen3_vl_moe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
