// T5, an encoder-decoder, trained to give the labels.
#pragma once

#include "base/json.h"
#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_t5(const JsonObject& config);
// The encoder alone where the configuration is of T5EncoderModel, as text encoders of image models are stored.
Expected<Architecture> outline_t5(const JsonObject& config);

Output forward_t5(Modules& m, const Architecture& arch, Batch batch);

}  // namespace ullage::model
