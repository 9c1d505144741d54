// The forward pass and the configuration of MiniMax-M2's family.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_minimax_m2(const JsonObject& config);
Output forward_minimax_m2(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
