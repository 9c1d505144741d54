// The forward pass and the configuration of Llama and Mistral.
#pragma once

#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_llama(const JsonObject& config);
Expected<Architecture> build_mistral(const JsonObject& config);
Output forward_llama(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
