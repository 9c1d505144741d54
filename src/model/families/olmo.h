// The forward passes and the configurations of OLMo, OLMo 2 and Olmo 3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_olmo(const JsonObject& config);
Expected<Architecture> build_olmo2(const JsonObject& config);
Expected<Architecture> build_olmo3(const JsonObject& config);
Output forward_olmo(Modules& modules, const Architecture& architecture, Batch batch);
Output forward_olmo2(Modules& modules, const Architecture& architecture, Batch batch);
// Queries and keys are normed over all heads together.
AttentionOutput olmo2_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask);
// Norms behind attention and feed-forward, before each is added to what came in.
Tensor post_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                       const RotaryTables& rotary, Tensor mask);

}  // namespace ullage::model
