// The forward pass and the configuration of EXAONE 4.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_exaone4(const JsonObject& config);
Output forward_exaone4(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
