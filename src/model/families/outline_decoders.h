// Outlines of decoders with ordinary attention that transformers does not have, or has under other names.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

Expected<Architecture> outline_bitnet(const JsonObject& config);
Expected<Architecture> outline_dbrx(const JsonObject& config);
Expected<Architecture> outline_internlm(const JsonObject& config);
Expected<Architecture> outline_internlm3(const JsonObject& config);
Expected<Architecture> outline_mimo(const JsonObject& config);
Expected<Architecture> outline_mimo_v2_flash(const JsonObject& config);
Expected<Architecture> outline_minicpm(const JsonObject& config);
Expected<Architecture> outline_nemotron_nas(const JsonObject& config);
Expected<Architecture> outline_orion(const JsonObject& config);
Expected<Architecture> outline_pangu_embedded(const JsonObject& config);
Expected<Architecture> outline_step3p7(const JsonObject& config);

}  // namespace ullage::model
