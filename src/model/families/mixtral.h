// The forward pass and the configuration of Mixtral.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_mixtral(const JsonObject& config);
Output forward_mixtral(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
