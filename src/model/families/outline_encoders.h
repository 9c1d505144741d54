// Outlines of encoders: of text, images and sound.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

Expected<Architecture> outline_albert(const JsonObject& config);
Expected<Architecture> outline_blip(const JsonObject& config);
Expected<Architecture> outline_clip_text(const JsonObject& config);
Expected<Architecture> outline_dinov2(const JsonObject& config);
Expected<Architecture> outline_distilbert(const JsonObject& config);
Expected<Architecture> outline_mpnet(const JsonObject& config);
Expected<Architecture> outline_nomic_bert(const JsonObject& config);
Expected<Architecture> outline_wavlm(const JsonObject& config);
Expected<Architecture> outline_xlm_roberta(const JsonObject& config);

}  // namespace ullage::model
