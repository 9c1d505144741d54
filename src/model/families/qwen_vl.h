// Qwen2-VL and Qwen2.5-VL: a tower that sees images in front of a text model, whose tokens have positions in time,
// height and width.
#pragma once

#include "model/families/qwen_tower.h"

namespace ullage::model {

Expected<Architecture> build_qwen2_vl(const JsonObject& config);
Expected<Architecture> build_qwen2_5_vl(const JsonObject& config);
Output forward_qwen2_vl(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
