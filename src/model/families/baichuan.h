#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_baichuan(const JsonObject& config);
Output forward_baichuan(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
