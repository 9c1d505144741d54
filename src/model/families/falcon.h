#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_falcon(const JsonObject& config);
// RefinedWeb and RefinedWebModel: the names that the models' own code gave the fields. Run as transformers' class,
// which loads the same weights.
Expected<Architecture> build_refined_web(const JsonObject& config);
Output forward_falcon(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
