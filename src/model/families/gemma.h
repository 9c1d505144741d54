// The forward passes and the configurations of Gemma, Gemma 2 and the text model of Gemma 3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_gemma(const JsonObject& config);
Expected<Architecture> build_gemma2(const JsonObject& config);
Expected<Architecture> build_gemma3(const JsonObject& config);
Output forward_gemma2(Modules& modules, const Architecture& architecture, Batch batch);
Output forward_gemma3(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
