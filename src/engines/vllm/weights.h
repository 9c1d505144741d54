// What one GPU holds of a model's weights in vLLM.
//
// Source: vllm/model_executor/layers/linear.py (rows and columns by tensor-parallel rank, heads of keys and values
// copied where there are fewer than ranks), vocab_parallel_embedding.py (rows padded to 64), rotary_embedding.py (one
// table of cosines and sines for each kind of rotary embedding, in the model's type), distributed/utils.py
// (get_pp_indices).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/vllm/options.h"
#include "model/architecture.h"

namespace ullage::engines::vllm {

// Layers of a pipeline stage: from `first` to `last`, which is not included.
struct Stage {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool embeds = true;  // it is the first stage
  bool heads = true;   // it is the last
};

// Layers that do not divide go to the stages before the last, from the back.
std::vector<Stage> pipeline_stages(std::int64_t layers, std::int64_t stages);

// Bytes of so many elements of a parameter as they are kept; the whole parameter is `parameter`.
using StoredBytes =
    std::function<std::int64_t(const model::Parameter& parameter, std::string_view name, std::int64_t elements)>;

// All in the model's type.
StoredBytes unquantised(const Options& options);

struct RankWeights {
  std::int64_t parameters_bytes = 0;
  std::int64_t rotary_bytes = 0;  // tables up to the model's last position
  std::int64_t bytes() const { return parameters_bytes + rotary_bytes; }
};

RankWeights rank_weights(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const StoredBytes& stored);

// Elements of the parameter that one rank holds.
std::int64_t local_elements(const model::Parameter& parameter, const Options& options);

}  // namespace ullage::engines::vllm
