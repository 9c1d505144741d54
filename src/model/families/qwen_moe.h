// The forward passes and the configurations of Qwen's mixtures of experts.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_qwen2_moe(const JsonObject& config);
Output forward_qwen2_moe(Modules& modules, const Architecture& architecture, Batch batch);
Expected<Architecture> build_qwen3_moe(const JsonObject& config);
// A layer of Qwen3-MoE: its parameters and its forward pass.
LayerKind qwen3_sparse_kind(const DecoderConfig& c, const LayerTraits& traits);
Tensor qwen3_moe_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask);
// Every decoder_sparse_step-th layer has a mixture, but for those in mlp_only_layers.
void read_sparse_layers(Fields& fields, DecoderConfig& c);
void read_qwen_mixture(Fields& fields, DecoderConfig& c, const MixtureConfig& defaults);
Output forward_qwen3_moe(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
