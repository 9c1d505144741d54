// Whisper, trained to write down speech (WhisperForConditionalGeneration).
#pragma once

#include "base/json.h"
#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_whisper(const JsonObject& config);
Output forward_whisper(Modules& m, const Architecture& arch, Batch batch);

}  // namespace ullage::model
