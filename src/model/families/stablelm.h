// The forward pass and the configuration of StableLM.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_stablelm(const JsonObject& config);
Output forward_stablelm(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
