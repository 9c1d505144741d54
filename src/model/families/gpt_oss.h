// The forward pass and the configuration of gpt-oss.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_gpt_oss(const JsonObject& config);
Output forward_gpt_oss(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
