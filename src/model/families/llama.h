// The forward pass and the configuration of Llama and Mistral.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<DecoderConfig> read_llama_config(const JsonObject& config);
Expected<DecoderConfig> read_mistral_config(const JsonObject& config);
// A layer with separate projections, a gated feed-forward and an RMS norm before each.
LayerKind llama_kind(const DecoderConfig& c, const LayerTraits& traits);
Expected<Architecture> build_llama(const JsonObject& config);
Expected<Architecture> build_mistral(const JsonObject& config);
Output forward_llama(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
