// The configuration that a GGUF file's metadata amount to, in the words of a config.json.
#pragma once

#include <string>

#include "base/json.h"
#include "model/checkpoint/gguf.h"

namespace ullage::model {

// What build_architecture reads. The size of the vocabulary is that of the stored embeddings, else vocab_size, else the
// number of tokens; what metadata do not say (biases, tied heads) is seen from the tensors. Sources: the keys of
// gguf-py/gguf/constants.py in ggml-org/llama.cpp, what convert_hf_to_gguf.py writes into them, and
// transformers/integrations/ggml.py, which reads them back.
// ErrorCode::unsupported for architectures of ggml without a family here.
Expected<Json> config_of(const Gguf& gguf, const std::string& where);

// Whether the file holds a tensor of that name.
bool holds(const Gguf& gguf, std::string_view tensor);

}  // namespace ullage::model
