// Parameters, with checkpoint names and logical axes, and the modules that are nothing but parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace ullage::model {

enum class Axis : std::uint8_t {
  vocab,
  position,
  hidden,
  heads,
  kv_heads,
  rank,
  ffn,
  expert,
  channels,
  kernel,
  classes
};

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

// The class of module that a weight belongs to, as far as adapters ask for it.
enum class ModuleKind : std::uint8_t { other, linear, conv1d, embedding, convolution };

struct Parameter {
  std::string name;                     // "model.norm.weight", or within a layer "self_attn.q_proj.weight"
  std::vector<Dimension> dims;          // outermost first, as stored
  std::optional<std::int32_t> tied_to;  // index of the model's parameter whose memory it shares
  ModuleKind module = ModuleKind::other;
  bool unused = false;  // the forward pass does without: no gradient ever reaches it
  bool frozen = false;  // its own module keeps it from being trained
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

enum class NormKind : std::uint8_t {
  rms,             // in fp32, back to the input's type, times the weight (Llama)
  rms_one_plus,    // in fp32 times (1 + weight), then back (Gemma)
  rms_cast_last,   // in fp32 times the weight as it is, then back (OLMo 2)
  layer,           // the library's layer norm
  layer_fp32,      // the same in fp32, then back (OLMo)
  layer_composed,  // the layer norm written out in fp32 (Cohere)
  rms_promoted,    // the mean square in fp32, which the quotient is promoted to, then the weight's type (T5)
};

struct Norm {
  NormKind kind = NormKind::rms;
  ParameterRef weight;
  ParameterRef bias;
};

struct Embedding {
  ParameterRef weight;
  std::int32_t scale = -1;  // index of the buffer that what is looked up is multiplied by; -1: none
  bool by_number = false;   // the module multiplies what it looks up by a number, even by 1
};

struct Linear {
  ParameterRef weight;
  ParameterRef bias;           // may be empty
  bool stored_in_out = false;  // weight is [in, out] (GPT-2's Conv1D) instead of [out, in]
  bool by_product = false;     // x @ weight.T, and an addition of the bias, instead of one operator
};

}  // namespace ullage::model
