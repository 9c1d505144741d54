// Multi-head latent attention: the fields of its configurations, its parameters and its way through a layer.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

struct LatentDefaults {
  std::int64_t q_rank = 1536;
  std::int64_t kv_rank = 512;
  std::int64_t nope_dim = 128;
  std::int64_t rope_dim = 64;
  std::int64_t value_dim = 128;
};

// q_lora_rank (null: queries are projected at once), kv_lora_rank and the dimensions of a head.
void read_latent(Fields& fields, DecoderConfig& c, const LatentDefaults& defaults);

// self_attn: q_proj, or q_a_proj, q_a_layernorm and q_b_proj; kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj and o_proj.
// Only the way down and the output have a bias.
void add_latent_projections(ParameterList& p, LayerKind& layer, const DecoderConfig& c);

AttentionOutput latent_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                 Tensor mask);

}  // namespace ullage::model
