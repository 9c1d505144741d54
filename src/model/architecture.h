// A network as data: parameters with checkpoint names and logical axes, and the kinds of its layers.
//
// Equal layers are described once (a LayerKind) and referred to by layer number, so that describing 80 layers costs as
// much as describing one. Engines build their own graphs from this; sharding, quantisation and adapters work on axes
// and names, never on a family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/expected.h"

namespace ullage::model {

enum class Axis : std::uint8_t { vocab, position, hidden, heads, kv_heads, ffn, expert, channels, kernel, classes };

// `count` units of `unit` elements along a logical axis: 32 heads of 128.
struct AxisPart {
  Axis axis = Axis::hidden;
  std::int64_t count = 0;
  std::int64_t unit = 1;
};

// One dimension of a parameter: the parts one behind the other (a fused query-key-value projection has three).
struct Dimension {
  std::vector<AxisPart> parts;
  std::int64_t size() const;
};

// Where a parameter lives: in the model, or in the current layer; `index` counts within that list.
struct ParameterRef {
  std::int32_t index = -1;
  bool in_layer = false;
  explicit operator bool() const { return index >= 0; }
};

struct Parameter {
  std::string name;              // "model.norm.weight", or within a layer "self_attn.q_proj.weight"
  std::vector<Dimension> dims;   // outermost first, as stored
  std::optional<std::int32_t> tied_to;  // index of the model's parameter whose memory it shares
  std::int64_t elements() const;
};

// Memory of the model that is not trained: rotary frequencies, running statistics.
struct Buffer {
  std::string name;
  std::vector<std::int64_t> sizes;
  DType dtype = DType::f32;
  bool in_model_dtype = false;  // converted with the weights instead of keeping `dtype`
  bool persistent = false;      // stored in checkpoints
};

struct Embedding {
  ParameterRef weight;
};

struct Linear {
  ParameterRef weight;
  ParameterRef bias;          // may be empty
  bool stored_in_out = false; // weight is [in, out] (GPT-2's Conv1D) instead of [out, in]
};

enum class NormKind : std::uint8_t { rms, layer };

struct Norm {
  NormKind kind = NormKind::rms;
  ParameterRef weight;
  ParameterRef bias;
};

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, gelu_new, relu, tanh, sigmoid, linear };

enum class AttentionKind : std::uint8_t { none, grouped };  // grouped: also MHA (kv_heads = heads) and MQA (1)

struct Attention {
  AttentionKind kind = AttentionKind::grouped;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> window;  // tokens a query sees, itself included; none: all before it
  double dropout = 0;
  bool softmax_in_fp32 = true;         // the eager path computes probabilities in fp32
  bool upcast = false;                 // GPT-2's reorder_and_upcast_attn: scores in fp32 by baddbmm
  Linear q, k, v;                      // separate projections, or
  Linear qkv;                          // one fused
  Linear o;
};

struct Mlp {
  bool gated = true;  // down(act(gate(x)) * up(x)), else down(act(up(x)))
  Activation activation = Activation::silu;
  Linear gate, up, down;
};

struct LayerKind {
  std::string name;
  std::vector<Parameter> parameters;  // in registration order
  Norm input_norm;
  Norm post_attention_norm;
  Attention attention;
  Mlp mlp;
  double residual_dropout = 0;
};

struct Rotary {
  std::int64_t dim = 0;            // rotated dimensions of a head; 0: no rotary embedding
  std::string type = "default";
  std::int64_t original_max_positions = 0;
  std::int64_t max_positions = 0;
};

// What an image network needs instead of layers; see families/torchvision.h.
struct Image {
  std::string arch;  // "resnet50"; empty for text models
  std::int64_t classes = 0;
  std::int64_t size = 224;  // pixels of a side, the published default
  std::int64_t channels = 3;
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
  std::vector<LayerKind> kinds;
  std::vector<std::uint8_t> layers;   // index into kinds, by layer
  std::vector<Buffer> buffers;

  Embedding embedding;
  Embedding positions;                // learned positions; may be empty
  Norm final_norm;
  Linear head;
  Rotary rotary;
  double embedding_dropout = 0;
  Image image;

  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  const LayerKind& kind_of(std::int64_t layer) const { return kinds[layers[static_cast<std::size_t>(layer)]]; }
  // Number of layers after which the sequence of kinds repeats (1 when all are equal); 0: it does not.
  std::int64_t period() const;
};

// Distinct parameters (tied ones once).
std::int64_t parameter_count(const Architecture& architecture);

// Calls visit(parameter, full_name, layer or -1) for every parameter in registration order; tied ones too.
template <class Visit>
void for_each_parameter(const Architecture& architecture, Visit visit) {
  for (std::size_t i = 0; i < architecture.layers_at; ++i) visit(architecture.parameters[i], architecture.parameters[i].name, -1);
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer) {
    for (const Parameter& parameter : architecture.kind_of(layer).parameters) {
      visit(parameter, architecture.layer_prefix + std::to_string(layer) + "." + parameter.name, static_cast<int>(layer));
    }
  }
  for (std::size_t i = architecture.layers_at; i < architecture.parameters.size(); ++i) {
    visit(architecture.parameters[i], architecture.parameters[i].name, -1);
  }
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
  Embedding embedding(const std::string& name, const Dimension& rows, const Dimension& size);

 private:
  std::vector<Parameter>& list_;
  bool in_layer_;
};

}  // namespace ullage::model
