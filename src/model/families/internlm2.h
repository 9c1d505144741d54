#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_internlm2(const JsonObject& config);
Output forward_internlm2(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
