#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_gpt_neox(const JsonObject& config);
Output forward_gpt_neox(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
