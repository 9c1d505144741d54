// The forward pass and the configuration of Granite.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_granite(const JsonObject& config);
Output forward_granite(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
