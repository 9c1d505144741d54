// The forward pass and the configuration of OLMoE.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_olmoe(const JsonObject& config);
Output forward_olmoe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
