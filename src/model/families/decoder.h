// What decoders in the manner of Llama share: how their configurations are read, the parameters of their layers, the
// parts that their layers call and the way through the model. A family is what differs from that.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/config_fields.h"
#include "model/family.h"

namespace ullage::model {

// What the layers of one model may differ in.
struct LayerTraits {
  bool slides = false;  // a query sees a window only
  bool rotates = true;  // by the rotary embedding
  bool sparse = false;  // a mixture of experts in place of the feed-forward
  friend bool operator==(const LayerTraits&, const LayerTraits&) = default;
};

// Of layers with a mixture of experts.
struct MixtureConfig {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t intermediate = 0;         // of one expert
  std::int64_t shared_intermediate = 0;  // of what every token goes through
  std::int64_t groups = 0;               // as in Mixture
  std::int64_t top_groups = 0;
  bool normalizes = false;
  bool jitters = false;
  bool balances = false;  // as in Architecture
  ExpertsRun run = ExpertsRun::grouped;
};

// Of multi-head latent attention; fields as in Latent.
struct LatentConfig {
  std::int64_t q_rank = 0;  // 0: queries are projected at once
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
};

struct DecoderConfig {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  std::optional<std::int64_t> window;  // of the layers that slide
  std::vector<LayerTraits> traits;     // by layer; empty: none differs from the default
  std::vector<std::optional<std::int64_t>> mask_windows{std::nullopt};  // as in Architecture; layers that slide use
                                                                        // the last one, the others the first
  Activation activation = Activation::silu;
  double attention_dropout = 0;
  double residual_dropout = 0;
  double embedding_dropout = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  // where a configuration decides
  bool tied = false;
  Rotary rotary;
  MixtureConfig mixture;
  LatentConfig latent;
};

// The defaults of a family's configuration class.
struct DecoderDefaults {
  std::int64_t vocab = 32000;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 11008;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t max_positions = 2048;
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
  bool tied = false;
  bool null_kv_heads = true;  // null means as many as heads
};

// Reads the fields that all of these configurations have, and checks that the heads fit.
DecoderConfig read_decoder(Fields& fields, const DecoderDefaults& defaults);

// attention_bias, for the projections before attention and behind it.
void read_attention_bias(Fields& fields, DecoderConfig& c);

// Lets the layers slide that `layer_types` names, and sets the masks: one for full attention and, with `always` or if
// a layer slides, one for the window. Without the field `slides` decides by layer.
void read_layer_types(Fields& fields, DecoderConfig& c, bool always, const std::function<bool(std::int64_t)>& slides);

// Every layer sees the window, where there is one.
void slide_everywhere(DecoderConfig& c);

// --- parameters ------------------------------------------------------------------------------------------------------
// Each adds to `layer` what the published modules register under that name, in their order.
void add_projections(ParameterList& p, LayerKind& layer, const DecoderConfig& c);  // self_attn: q, k, v, o
void add_gated_mlp(ParameterList& p, LayerKind& layer, const DecoderConfig& c);    // mlp: gate, up, down
void add_fused_mlp(ParameterList& p, LayerKind& layer, const DecoderConfig& c);    // mlp: gate_up, down; no biases
// input_layernorm and post_attention_layernorm.
void add_norms(ParameterList& p, LayerKind& layer, const DecoderConfig& c, NormKind kind);

Dimension hidden_axis(const DecoderConfig& c);

// A layer without parameters yet: name, attention and activation.
LayerKind empty_layer(const DecoderConfig& c, const LayerTraits& traits);

// All layers as `make` makes them, between embedding and head.
Architecture decoder(const DecoderConfig& c, std::string_view family, NormKind final_norm,
                     const std::function<LayerKind(const DecoderConfig& c, const LayerTraits& traits)>& make);

// Registers a buffer by which the embedding multiplies what it looks up (Gemma).
void add_embedding_scale(Architecture& architecture);

// --- forward ---------------------------------------------------------------------------------------------------------
using AttentionFunction = AttentionOutput (*)(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary,
                                              Tensor mask);
using FeedForward = Tensor (*)(Modules& m, const LayerKind& layer, Tensor hidden);
using LayerFunction = Tensor (*)(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary,
                                 Tensor mask);

// [batch, seq, heads x head_dim] as [batch, seq, heads, head_dim].
Tensor split_heads(Tensor x, std::int64_t head_dim);

// What follows the projections: rotation, attention, and the projection of the heads' outputs. The probabilities come
// along because layers keep them bound.
AttentionOutput attend(Modules& m, const Attention& a, Tensor query, Tensor key, Tensor value,
                       const RotaryTables& rotary, Tensor mask);

// The same for what is rotated already.
AttentionOutput attend_rotated(Modules& m, const Attention& a, Tensor query, Tensor key, Tensor value, Tensor mask);

AttentionOutput llama_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask);

// Norms before attention and feed-forward, each added to what came in.
Tensor llama_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask);

// The same with another attention, or another feed-forward too.
Tensor pre_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, Tensor hidden,
                      const RotaryTables& rotary, Tensor mask);
Tensor pre_norm_layer(Modules& m, const LayerKind& layer, AttentionFunction attention, FeedForward feed_forward,
                      Tensor hidden, const RotaryTables& rotary, Tensor mask);

Output forward_decoder(Modules& m, const Architecture& arch, Batch batch, LayerFunction layer);

}  // namespace ullage::model
