// The forward passes and the configurations of Qwen2 and Qwen3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

// Without layer_types the layers from max_window_layers on slide, if use_sliding_window says so.
void read_qwen_windows(Fields& fields, DecoderConfig& c, std::int64_t first_by_default);
// Llama's layer with a norm of every query and key.
LayerKind qwen3_dense_kind(const DecoderConfig& c, const LayerTraits& traits);
Expected<Architecture> build_qwen2(const JsonObject& config);
Expected<Architecture> build_qwen3(const JsonObject& config);
Output forward_qwen3(Modules& modules, const Architecture& architecture, Batch batch);
// Queries and keys are normed head by head before they are transposed.
AttentionOutput qwen3_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask);

}  // namespace ullage::model
