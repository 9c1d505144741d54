// The configuration of Seed-OSS; its forward pass is Llama's.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_seed_oss(const JsonObject& config);

}  // namespace ullage::model
