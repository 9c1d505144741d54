// Names, shapes and roles that llama.cpp's converter gives a text model's tensors, without types.
#pragma once

#include <vector>

#include "model/gguf_mix.h"

namespace ullage::model {

// In the order of the file's layers, by name within a layer, as llama-quantize goes through them.
std::vector<MixTensor> untyped_gguf_tensors(const Architecture& architecture);

}  // namespace ullage::model
