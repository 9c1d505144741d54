// The forward pass and the configuration of GPT-2.
#pragma once

#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_gpt2(const JsonObject& config);
Output forward_gpt2(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
