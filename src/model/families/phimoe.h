// The forward pass and the configuration of phimoe.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_phimoe(const JsonObject& config);
Output forward_phimoe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
