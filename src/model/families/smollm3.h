// The forward pass and the configuration of SmolLM3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_smollm3(const JsonObject& config);

}  // namespace ullage::model
