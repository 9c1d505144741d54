// A network as data: parameters with checkpoint names and logical axes, and the kinds of its layers.
//
// Equal layers are described once (a LayerKind) and referred to by layer number, so that describing 80 layers costs as
// much as describing one. Engines build their own graphs from this; sharding, quantisation and adapters work on axes
// and names, never on a family.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/expected.h"
#include "model/image.h"
#include "model/layer_state.h"
#include "model/parameter.h"
#include "model/vision.h"

namespace ullage::model {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, gelu_new, quick_gelu, relu, tanh, sigmoid, linear };

enum class AttentionKind : std::uint8_t { none, grouped };  // grouped: also MHA (kv_heads = heads) and MQA (1)

// What multi-head latent attention (DeepSeek) has in place of projections to heads: queries, keys and values come out
// of narrow vectors, and a part of each query and key is turned by the rotary embedding, one key part for all heads.
struct Latent {
  std::int64_t kv_rank = 0;   // 0: the attention is none such
  std::int64_t nope_dim = 0;  // of a head of queries and keys: not turned
  std::int64_t rope_dim = 0;  // turned
  std::int64_t value_dim = 0;
  Linear q_down;  // may be empty: queries are projected at once, by Attention::q
  Norm q_norm;
  Linear q_up;
  Linear kv_down;
  Norm kv_norm;
  Linear kv_up;
};

// How a fused projection's rows are ordered.
enum class FusedHeads : std::uint8_t {
  in_sequence,  // all queries, all keys, all values
  by_head,      // query, key and value of each head
  by_group,     // the queries of each key and value head, then these
};

struct Attention {
  AttentionKind kind = AttentionKind::grouped;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;          // of a head of values where it is not head_dim; outlines only
  std::optional<std::int64_t> window;  // tokens a query sees, itself included; none: all before it
  std::optional<std::int64_t> chunk;   // a query sees what is before it in its chunk of so many tokens; outlines only
  std::int64_t indexer_dim = 0;        // of the one key by which sparse attention chooses tokens; 0: it has none
  std::int64_t tokens_per_entry = 1;   // keys and values stand for so many tokens (compressed attention)
  std::uint8_t mask = 0;               // index into the Architecture's mask_windows
  bool rotates = true;                 // by the rotary embedding, where there is one
  double dropout = 0;
  double output_dropout = 0;    // of what the output projection gives
  bool softmax_in_fp32 = true;  // the eager path computes probabilities in fp32
  bool plain_softmax = false;   // and leaves them as softmax gives them (BERT)
  bool causal = true;           // a fused kernel without a mask lets a query see nothing behind it
  bool groups_keys = true;      // the module knows of key groups: SDPA is told to group even equal heads
  bool upcast = false;          // GPT-2's reorder_and_upcast_attn: scores in fp32 by baddbmm
  bool softcaps = false;        // the eager path squashes scores by tanh
  bool clips = false;           // queries, keys and values are clamped in place
  bool eager_only = false;      // the module knows no fused kernel
  bool caches = false;   // keys and values are kept as for generation, which nobody has told the module not to do
  bool clipped = false;  // the projection's results are clamped
  Linear q, k, v;        // separate projections, or
  Linear qkv;            // one fused
  FusedHeads fused_heads = FusedHeads::in_sequence;
  Linear o;
  Norm q_norm, k_norm;  // may be empty
  ParameterRef sinks;   // a logit for each head beside the scores (gpt-oss); may be empty
  Embedding biases;     // a bias for each head by the distance between query and key (T5); may be empty
  Latent latent;
};

struct Mlp {
  bool gated = true;  // down(act(gate(x)) * up(x)), else down(act(up(x)))
  Activation activation = Activation::silu;
  Linear gate, up, down;
  double dropout = 0;        // of what comes out
  double inner_dropout = 0;  // of what the activation gives
};

// How an expert's first product holds gate and up, and what becomes of them.
enum class ExpertGating : std::uint8_t {
  halves,         // act(gate) * up
  clamped_turns,  // gate and up in turns, both clamped, the gate by its own sigmoid (gpt-oss)
};

// transformers' experts_implementation.
enum class ExpertsRun : std::uint8_t {
  grouped,     // grouped_mm: rows sorted by expert, one product for each group; the default
  batched,     // batched_mm: weights gathered for every row
  one_by_one,  // a linear layer for each expert's rows, in code of the family's own (Granite)
};

// The experts of a mixture, their weights stacked: gate_up [experts, 2 x ffn, hidden], down [experts, hidden, ffn].
struct Experts {
  std::int64_t count = 0;
  ExpertGating gating = ExpertGating::halves;
  ExpertsRun run = ExpertsRun::grouped;
  Activation activation = Activation::silu;
  bool stored_in_out = false;  // [experts, in, out] instead
  ParameterRef gate_up, gate_up_bias, down, down_bias;
};

// A mixture of experts in place of a feed-forward.
struct Mixture {
  Experts experts;  // count 0: the layer has none
  Linear router;
  std::int64_t top_k = 0;   // experts that a token goes to
  std::int64_t groups = 0;  // of experts: they are chosen within the best top_groups only; 0: all are one group
  std::int64_t top_groups = 0;
  bool jitters = false;          // noise multiplies what the router sees
  bool normalizes = false;       // the chosen experts' weights add up to one
  std::int32_t correction = -1;  // index of the layer's buffer that is added to scores for the choice alone
  Mlp shared;                    // for every token; may be empty
  Linear shared_gate;            // may be empty
};

struct LayerKind {
  std::string name;
  std::vector<Parameter> parameters;  // in registration order
  Norm input_norm;
  Norm post_attention_norm;
  Norm feedforward_norm, post_feedforward_norm;  // around the feed-forward part, where post_attention_norm is not
  Attention attention;
  Attention cross_attention;  // of a decoder, to what the encoder gives
  Norm cross_norm;
  Mlp mlp;
  Mixture mixture;
  std::optional<Recurrent> recurrent;  // in place of attention (whose kind is none then) or beside it
  std::vector<TokenCache> also_keeps;  // of each token, besides what the attentions tell (model/cache.h)
  double residual_dropout = 0;
  std::vector<Buffer> buffers;
  bool parallel = false;             // attention and feed-forward read the same input
  bool norm_after = false;           // norms follow what they would precede
  bool two_norms = false;            // parallel, each behind a norm of its own
  bool residual_after_norm = false;  // what is added to the outputs is what the norms gave
};

enum class RotaryForm : std::uint8_t {
  halves,             // the halves of a head are pairs; tables in the hidden type (Llama)
  halves_back,        // the same, but what is turned goes back to its type (Olmo 3; differs under autocast only)
  halves_fp32,        // tables stay in fp32, what they turn goes back to its type (OLMo)
  joined,             // the turned dimensions are cut out and joined with the rest, even where they are all (Phi-3)
  joined_last,        // the same, both turned before either is joined (GLM)
  neighbours,         // neighbouring dimensions are pairs, turned in fp32 (Cohere)
  joined_neighbours,  // neighbouring dimensions of the part that is cut out are pairs; joined at the end (GLM-4)
  unzipped,           // neighbouring dimensions are pairs and come out as halves (deepseek_v3)
  narrow,             // tables of half the width for the two halves (gpt-oss)
  wide,               // queries and keys are turned in fp32, the tables' type, and go back (towers of Qwen-VL)
  sections,           // a table each for time, height and width, of which layers take sections (Qwen2-VL)
  interleaved,        // the same three taken in turns before cos and sin (Qwen3-VL)
  complex,            // neighbouring dimensions are complex numbers, and the table, in fp32, too (deepseek_v2)
};

struct Rotary {
  std::int64_t dim = 0;  // rotated dimensions of a head; 0: no rotary embedding
  RotaryForm form = RotaryForm::halves;
  std::array<std::int64_t, 3> sections{};  // pairs of a head that time, height and width turn
  bool recomputed = false;                 // frequencies are computed anew in each forward pass, from nothing (phimoe)
  bool kept = false;                       // the first forward pass makes tables that stay (Qwen's first generation)
  std::size_t buffer = 0;                  // index of its frequencies among the buffers; the original copy follows
  std::string type = "default";
  std::int64_t original_max_positions = 0;
  std::int64_t max_positions = 0;
};

// Rows of the tables that are kept, for sequences of `seq` tokens.
constexpr std::int64_t kept_rotary_rows(std::int64_t seq) { return seq > 8 ? 2 * seq : 16; }

// What becomes of the head's output.
enum class LogitForm : std::uint8_t { plain, multiplied, divided, softcapped };

// What whoever is told a figure of this architecture must be told with it.
enum class NoteKind : std::uint8_t {
  text_part_only,    // the configuration wraps this text model; `subject`: the wrapper's model type
  vision_part_only,  // the same of its vision model
};

struct Note {
  NoteKind kind = NoteKind::text_part_only;
  std::string subject;
};

// What stands in front of a stack of layers and behind it.
struct Sides {
  Embedding embedding;
  Embedding positions;
  Norm embedding_norm;
  Norm final_norm;
};

// What a masked language model's head does first.
struct HeadTransform {
  Linear dense;  // may be empty: nothing
  Activation activation = Activation::gelu;
  Norm norm;
};

// What a sample is.
enum class InputKind : std::uint8_t { tokens, images, sound };

// What makes a sequence of an image, in front of an encoder's layers: a convolution over its patches, a token for the
// class and learned positions.
struct VisionTower {
  Conv2d patches;
  ParameterRef class_token;     // [hidden] or [1, 1, hidden]
  Embedding positions;          // looked up by a buffer, or
  std::int32_t numbers = -1;    // index of that buffer
  ParameterRef position_table;  // [1, positions, hidden], added as it is
  Norm pre_norm;                // may be empty
  Norm post_norm;               // of the whole or of the class token alone
};

// weight [out, in, kernel].
struct Conv1d {
  ParameterRef weight;
  ParameterRef bias;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

// What makes a sequence of sound: two convolutions over frames of a spectrum.
struct Ear {
  std::int64_t mels = 0;    // bands of the spectrum
  std::int64_t frames = 0;  // of every sample, 10 ms each
  Conv1d first;
  Conv1d second;
};

struct Architecture {
  std::string name;    // as the user or the catalogue calls it; may be empty
  std::string family;  // "llama"
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t max_positions = 0;

  std::vector<Parameter> parameters;  // outside of layers, in registration order
  std::size_t layers_at = 0;          // how many of them are registered before the layers
  std::string layer_prefix;           // "model.layers."
  // Of an encoder-decoder: the encoder's layers come first, with a prefix of their own and none of the decoder's kinds.
  std::int64_t encoder_layers = 0;
  std::size_t encoder_at = 0;  // how many parameters are registered before the encoder's layers
  std::string encoder_prefix;
  std::vector<LayerKind> kinds;
  std::vector<std::uint8_t> layers;  // index into kinds, by layer
  // By layer: the layer whose keys and values it reads; empty: every layer has its own.
  std::vector<std::int32_t> cache_of;
  std::vector<Buffer> buffers;

  Embedding embedding;
  bool multiplies_embeddings = false;    // by a number
  bool multiplies_behind_masks = false;  // only when the masks are made
  Embedding positions;                   // learned positions; may be empty
  Embedding token_types;
  Norm embedding_norm;  // may be empty
  Linear project_in;    // from the embeddings' width to the layers', and
  Linear project_out;   // back; both empty where they are equal
  Norm final_norm;
  bool has_final_norm = true;
  Sides decoder;  // of an encoder-decoder, whose other embeddings and norms here are the encoder's
  HeadTransform head_transform;
  Linear head;
  bool normalized_head = false;  // its rows are scaled to length one in every step
  LogitForm logits = LogitForm::plain;
  bool balances_experts = false;  // the routers' load-balancing loss is added (output_router_logits)
  Rotary rotary;
  Rotary local_rotary;               // of layers with a window; dim 0: they share the other
  bool masks_know_positions = true;  // the functions that make masks are given the positions
  // Of the causal masks in the order they are made.
  std::vector<std::optional<std::int64_t>> mask_windows{std::nullopt};
  bool alibi = false;  // positions by biases of the scores
  double embedding_dropout = 0;
  bool bounded_positions = false;  // a buffer ends at max_positions: longer sequences fail
  InputKind input = InputKind::tokens;
  Image image;
  VisionTower tower;
  Ear ear;
  Vision vision;
  Mlp projector;  // from a tower's tokens to the text's
  std::vector<Note> notes;

  // torchvision's networks are trees of modules; other image models have layers.
  bool is_module_tree() const { return !image.arch.empty(); }
  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  const LayerKind& kind_of(std::int64_t layer) const { return kinds[layers[static_cast<std::size_t>(layer)]]; }
  bool in_encoder(std::int64_t layer) const { return layer < encoder_layers; }
  // Number of layers after which the sequence of kinds repeats (1 when all are equal); 0: it does not.
  std::int64_t period() const;
};

// Distinct parameters (tied ones once).
std::int64_t parameter_count(const Architecture& architecture);

// Those that take part for one token: of a mixture's experts the chosen ones.
std::int64_t active_parameter_count(const Architecture& architecture);

// Calls visit(parameter, full_name, layer or -1) for every parameter in registration order; tied ones too.
template <class Visit>
void for_each_parameter(const Architecture& architecture, Visit visit) {
  const auto outside = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) visit(architecture.parameters[i], architecture.parameters[i].name, -1);
  };
  const auto layers = [&](const std::string& prefix, std::int64_t from, std::int64_t to) {
    for (std::int64_t layer = from; layer < to; ++layer) {
      for (const Parameter& parameter : architecture.kind_of(layer).parameters) {
        visit(parameter, prefix + std::to_string(layer - from) + "." + parameter.name, static_cast<int>(layer));
      }
    }
  };
  outside(0, architecture.encoder_at);
  layers(architecture.encoder_prefix, 0, architecture.encoder_layers);
  outside(architecture.encoder_at, architecture.layers_at);
  layers(architecture.layer_prefix, architecture.encoder_layers, architecture.layer_count());
  outside(architecture.layers_at, architecture.parameters.size());
}

// Writing an Architecture: adds a parameter to a list and returns the reference to it.
class ParameterList {
 public:
  ParameterList(std::vector<Parameter>& list, bool in_layer) : list_(list), in_layer_(in_layer) {}

  ParameterRef add(std::string name, std::vector<Dimension> dims);
  // weight [out, in] and, if asked for, bias [out]; names "<name>.weight" and "<name>.bias".
  Linear linear(const std::string& name, const Dimension& in, const Dimension& out, bool bias);
  // The same with the weight stored [in, out].
  Linear conv1d(const std::string& name, const Dimension& in, const Dimension& out);
  Norm rms_norm(const std::string& name, const Dimension& size);
  Norm layer_norm(const std::string& name, const Dimension& size);
  // With the parameters that the kind has.
  Norm norm(NormKind kind, const std::string& name, const Dimension& size);
  Embedding embedding(const std::string& name, const Dimension& rows, const Dimension& size);

 private:
  ParameterRef add_weight(std::string name, std::vector<Dimension> dims, ModuleKind module);

  std::vector<Parameter>& list_;
  bool in_layer_;
};

}  // namespace ullage::model
