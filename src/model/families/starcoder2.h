// The configuration of StarCoder2; its forward pass is Llama's with dropouts.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_starcoder2(const JsonObject& config);

}  // namespace ullage::model
