// The forward passes and the configurations of Qwen2 and Qwen3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_qwen2(const JsonObject& config);
Expected<Architecture> build_qwen3(const JsonObject& config);
Output forward_qwen3(Modules& modules, const Architecture& architecture, Batch batch);
// Queries and keys are normed head by head before they are transposed.
AttentionOutput qwen3_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask);

}  // namespace ullage::model
