// Parts of layers as outlines have them: what modules register under a name, and what of it layers keep. `at` stands in
// front of all names and ends in a dot or is empty.
#pragma once

#include <optional>
#include <string>

#include "model/families/outline.h"

namespace ullage::model {

// Dimensions along their axes.
Dimension width(std::int64_t size);   // hidden
Dimension narrow(std::int64_t size);  // a rank
Dimension ffn_width(std::int64_t size);
Dimension head_width(std::int64_t heads, std::int64_t dim);
Dimension kv_width(std::int64_t heads, std::int64_t dim);
Dimension joined(std::vector<Dimension> parts);  // one behind the other

// --- attention -------------------------------------------------------------------------------------------------------
struct ProjectionNames {
  std::string_view q = "q_proj";
  std::string_view k = "k_proj";
  std::string_view v = "v_proj";
  std::string_view o = "o_proj";
  std::string_view q_norm = "q_norm";  // of each head, where norms are asked for
  std::string_view k_norm = "k_norm";
};

struct Projections {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  // 0: head_dim
  bool q_bias = false;
  bool k_bias = false;
  bool v_bias = false;
  bool o_bias = false;
  bool norms = false;
  bool gated = false;  // the query's projection makes a gate of the same width
};

Projections projections_of(const DecoderConfig& c);
// Of encoders and towers: as many heads of keys, biases everywhere or nowhere.
Projections square_projections(std::int64_t hidden, std::int64_t heads, bool bias);

void add_attention(ParameterList& p, Attention& a, const std::string& at, const Projections& from,
                   const ProjectionNames& names = {});

// The lightning indexer by which sparse attention chooses tokens (DeepSeek V3.2): wq_b, wk, k_norm, weights_proj.
void add_indexer(ParameterList& p, Attention& a, const std::string& at, std::int64_t hidden, std::int64_t q_rank,
                 std::int64_t heads, std::int64_t head_dim);

// --- feed-forward ----------------------------------------------------------------------------------------------------
struct GatedNames {
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
};

Mlp add_gated(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn, bool bias = false,
              const GatedNames& names = {});
// Gate and up in one.
Mlp add_gate_up(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn);
// Without a gate.
Mlp add_plain(ParameterList& p, const std::string& at, std::int64_t hidden, std::int64_t ffn, bool bias,
              std::string_view up, std::string_view down);

// Routed experts, stacked: `at` + gate_up_proj and down_proj; without a gate up_proj and down_proj.
void add_routed(ParameterList& p, LayerKind& layer, const std::string& at, std::int64_t hidden,
                const MixtureConfig& from, bool gated = true);

// --- layers without keys and values ----------------------------------------------------------------------------------
struct MambaShape {
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  std::int64_t state = 0;
  std::int64_t kernel = 0;
  std::int64_t time_rank = 0;  // Mamba
  std::int64_t heads = 0;      // Mamba 2
  std::int64_t groups = 0;
  bool bias = false;
  bool conv_bias = true;
  bool inner_norms = false;      // of time step, B and C (Jamba)
  bool norm = true;              // of what the state gives (Mamba 2)
  std::optional<bool> out_bias;  // where the output differs from the input
};

void add_mamba(ParameterList& p, LayerKind& layer, const std::string& at, const MambaShape& from);
void add_mamba2(ParameterList& p, LayerKind& layer, const std::string& at, const MambaShape& from);

struct DeltaShape {
  std::int64_t hidden = 0;
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t kernel = 0;
  bool joined = false;  // two projections instead of four (Qwen3-Next)
};

void add_gated_delta(ParameterList& p, LayerKind& layer, const std::string& at, const DeltaShape& from);

// --- towers ----------------------------------------------------------------------------------------------------------
struct BlockNames {
  std::string_view attention = "self_attn.";
  std::string_view mlp = "mlp.";
  std::string_view norm1 = "layer_norm1";
  std::string_view norm2 = "layer_norm2";
  std::string_view up = "fc1";
  std::string_view down = "fc2";
  ProjectionNames projections{"q_proj", "k_proj", "v_proj", "out_proj"};
};

// A block of an encoder in the manner of CLIP: layer norms with biases, attention, a feed-forward without a gate.
struct Block {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t heads = 1;
  bool bias = true;  // of attention
  bool k_bias = true;
};

void add_block(ParameterList& p, const std::string& at, const Block& from, const BlockNames& names = {});

// The convolution over patches: weight [hidden, channels, (frames,) patch, patch].
void add_patches(ParameterList& p, const std::string& name, std::int64_t hidden, std::int64_t channels,
                 std::int64_t patch, std::int64_t frames, bool bias);

}  // namespace ullage::model
