// Outlines of networks whose layers keep a state of fixed size, alone or among layers of attention: Mamba, Mamba 2,
// gated delta nets, short convolutions, RWKV.
#pragma once

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

Expected<Architecture> outline_bamba(const JsonObject& config);
Expected<Architecture> outline_falcon_h1(const JsonObject& config);
Expected<Architecture> outline_falcon_mamba(const JsonObject& config);
Expected<Architecture> outline_granitemoehybrid(const JsonObject& config);
Expected<Architecture> outline_jamba(const JsonObject& config);
Expected<Architecture> outline_lfm2(const JsonObject& config);
Expected<Architecture> outline_mamba(const JsonObject& config);
Expected<Architecture> outline_mamba2(const JsonObject& config);
Expected<Architecture> outline_nemotron_h(const JsonObject& config);
Expected<Architecture> outline_qwen3_next(const JsonObject& config);
Expected<Architecture> outline_qwen3_5(const JsonObject& config);
Expected<Architecture> outline_qwen3_5_text(const JsonObject& config);
Expected<Architecture> outline_qwen3_5_moe(const JsonObject& config);
Expected<Architecture> outline_qwen3_5_moe_text(const JsonObject& config);

}  // namespace ullage::model
