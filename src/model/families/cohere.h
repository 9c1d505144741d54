// The forward passes and the configurations of Cohere's Command R models.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_cohere(const JsonObject& config);
Expected<Architecture> build_cohere2(const JsonObject& config);
Output forward_cohere(Modules& modules, const Architecture& architecture, Batch batch);
Output forward_cohere2(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
