#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_chatglm(const JsonObject& config);
Output forward_chatglm(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
