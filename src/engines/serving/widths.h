// Widths of a layer that a forward pass's temporaries follow from.
#pragma once

#include <cstdint>

#include "model/architecture.h"

namespace ullage::engines::serving {

// Elements of the feed-forward that every token goes through; 0: there is none.
std::int64_t dense_width(const model::LayerKind& kind);

// Bytes of the fused experts' two buffers, for what each token's experts give: the first product and the second in one,
// what the activation gives in the other. `ranks` cut each expert; 0 where the layer has none.
// Source: vllm/model_executor/layers/fused_moe/fused_moe.py, sglang/srt/layers/moe/fused_moe_triton/fused_moe.py.
std::int64_t expert_workspace(const model::LayerKind& kind, std::int64_t hidden, std::int64_t tokens,
                              std::int64_t ranks, std::int64_t element_bytes);

}  // namespace ullage::engines::serving
