// LLaVA: CLIP's tower in front of a decoder in the manner of Llama.
#pragma once

#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_llava(const JsonObject& config);
Output forward_llava(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
