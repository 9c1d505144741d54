// Models in the manner of Llama, for code bases that have one decoder for all of them.
#pragma once

#include <string_view>

#include "model/architecture.h"

namespace ullage::engines::pytorch {

// Attention that rotates whole heads, gated feed-forward, a norm before each, and nothing else; query, key and value
// may have biases.
bool is_plain_decoder(const model::Architecture& architecture);

// A layer's modules, in the order in which they are registered: "attn.q_proj".
struct LayerNames {
  std::string_view q, k, v, o;
  std::string_view gate, down, up;
  std::string_view input_norm, post_attention_norm;
};

// The layer of a plain decoder, under those names.
model::LayerKind renamed_layer(const model::Architecture& architecture, const LayerNames& names);

}  // namespace ullage::engines::pytorch
