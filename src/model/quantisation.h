// How a checkpoint stores its weights: which format each takes, what stays as it is, and the bytes of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/expected.h"
#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

enum class WeightFormat : std::uint8_t {
  plain,       // in a type of the tensor library
  fp8,         // one byte; scales of the whole, of each row, or of blocks
  int8_rows,   // one byte; a scale of each row (bitsandbytes' LLM.int8: fp32; compressed-tensors: as the model)
  bnb_4bit,    // half a byte, a scale for every 64 weights (bitsandbytes' nf4 and fp4)
  awq,         // half a byte in integers of four; scales and zeros of groups of inputs
  gptq,        // the same the other way round, with the group of each input
  packed_int,  // compressed-tensors' pack-quantized
  nvfp4,       // half a byte, an fp8 scale for every 16 weights and one of the whole
  mxfp4,       // half a byte, a scale of one byte for every 32
  affine,      // MLX: packed, a scale and a bias of each group
};

// One way of storing a matrix [out, in]. Sources: quantisation_formats.cc.
struct WeightScheme {
  WeightFormat format = WeightFormat::plain;
  std::string name;  // "fp8", as reports call it
  std::int64_t bits = 16;
  std::int64_t group = 0;       // inputs that share a scale; 0: all
  std::int64_t block_rows = 0;  // fp8: scales of blocks of so many rows and columns; 0: of the whole
  std::int64_t block_columns = 0;
  bool by_row = false;            // fp8: a scale of each row
  bool double_quantised = false;  // bitsandbytes: scales are quantised themselves
  bool zeros = false;             // packed: zero points are stored
  bool static_inputs = false;     // a scale of the inputs is stored
  bool zero_biases = false;       // gptq: a bias is stored where the layer has none
  bool scales_in_model_dtype = false;
};

// Modules by name: exact, the end or the beginning of a name, a glob with "*", or "re:" and a regular expression.
struct NamePatterns {
  std::vector<std::string> patterns;
  bool names(const std::string& module) const;
};

struct Quantisation {
  std::string name;  // "fp8", "compressed-tensors"
  struct Rule {
    NamePatterns targets;  // empty: every linear layer
    WeightScheme scheme;
  };
  std::vector<Rule> rules;  // the first that fits holds
  NamePatterns ignored;     // stay as they are
  bool head_too = false;    // the head as well, if it is not ignored
  bool embeddings_too = false;
};

// fp8, fp8-block, int8, nf4, nf4-dq, fp4, fp4-dq, awq, gptq, int4, nvfp4, mxfp4; fp32, bf16 and fp16 leave everything
// plain.
Expected<Quantisation> quantisation_named(std::string_view word);
std::string quantisation_names();

// From quantization_config. Fails on a method that is not modelled, with its name.
Expected<Quantisation> read_quantisation(const JsonObject& config);

struct WeightPart {
  std::string suffix;  // behind the module's name: ".weight", ".weight_scale_inv"
  std::string dtype;   // "fp8", "uint8", "int32", "bf16"
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

// One tensor of the architecture, or an expert's matrix of a stack of them, as it is stored.
struct StoredWeight {
  std::string name;    // module or parameter, "*" for numbers of layers and experts
  std::string scheme;  // "fp8"; the type's name where it is plain
  std::int64_t copies = 1;
  std::int64_t elements = 0;  // of one
  std::vector<WeightPart> parts;
  std::int64_t bytes() const;  // of one
};

// Every parameter and stored buffer, equal ones of several layers together.
std::vector<StoredWeight> stored_weights(const Architecture& architecture, const Quantisation& quantisation,
                                         DType dtype);

}  // namespace ullage::model
