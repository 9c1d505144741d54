#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_falcon(const JsonObject& config);
Output forward_falcon(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
