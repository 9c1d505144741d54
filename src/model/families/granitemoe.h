// The forward pass and the configuration of Granite's mixture of experts.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_granitemoe(const JsonObject& config);
Output forward_granitemoe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
