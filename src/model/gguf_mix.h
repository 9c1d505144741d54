// The tensors of a GGUF file of a model, and the type that llama.cpp's quantisation gives each of them.
//
// A file-level name such as Q4_K_M is a mix: most tensors get one type, some a wider one by their role and layer.
// Source of the rule: llama.cpp, src/llama-quant.cpp (llama_tensor_get_type) without an importance matrix; held to what
// `llama-quantize --dry-run` of build 11669 says (tests/truth/record_gguf_mixes.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "model/architecture.h"
#include "model/ggml_type.h"

namespace ullage::model {

// What the rule knows of a tensor besides its shape.
enum class GgufRole : std::uint8_t {
  embedding,
  output,
  attn_q,
  attn_k,
  attn_v,
  attn_qkv,
  attn_output,
  ffn_gate,
  ffn_up,
  ffn_down,
  other,  // any other matrix
  full,   // vectors, convolutions, routers: fp32 whatever the mix
};

struct MixTensor {
  std::string name;                 // "blk.0.attn_q.weight"; where llama.cpp's name is not known, the checkpoint's own
  std::vector<std::int64_t> shape;  // outermost first; rows are along the last
  GgufRole role = GgufRole::other;
  std::int32_t layer = -1;
  GgmlType type = GgmlType::f32;
  std::int64_t bytes = 0;
};

// "Q4_K_M", ignoring case; Q4_K stands for it, as for llama-quantize.
bool is_gguf_mix(std::string_view name);

// All names of mixes, for messages.
std::string gguf_mix_names();

// The text model's tensors with their types; of towers nothing, which llama.cpp keeps in a file of their own. Fails
// where the mix is none, or has no type for rows of a tensor's length.
Expected<std::vector<MixTensor>> gguf_tensors(const Architecture& architecture, std::string_view mix);

}  // namespace ullage::model
