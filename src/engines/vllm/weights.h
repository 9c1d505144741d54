// What one GPU holds of a model's weights in vLLM.
//
// Source: vllm/model_executor/layers/linear.py (rows and columns by tensor-parallel rank, heads of keys and values
// copied where there are fewer than ranks), vocab_parallel_embedding.py (rows padded to 64), rotary_embedding/ (one
// table of cosines and sines for each kind of rotary embedding, in the model's type; positions that are stretched
// linearly or by yarn have rows for the stretched length), distributed/utils.py (get_pp_indices).
#pragma once

#include <cstdint>
#include <vector>

#include "engines/vllm/options.h"
#include "model/architecture.h"
#include "model/quantisation.h"

namespace ullage::engines::vllm {

// Layers of a pipeline stage: from `first` to `last`, which is not included. The first stage has a tower's layers, too.
struct Stage {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool embeds = true;  // it is the first stage
  bool heads = true;   // it is the last
};

// Layers that do not divide go to the stages before the last, from the back.
std::vector<Stage> pipeline_stages(std::int64_t layers, std::int64_t stages);

struct RankWeights {
  std::int64_t parameters_bytes = 0;  // without what is offloaded
  std::int64_t rotary_bytes = 0;      // tables up to the model's last position
  std::int64_t lora_bytes = 0;        // places for adapters
  std::int64_t draft_bytes = 0;       // of layers that draft
  std::int64_t offloaded_bytes = 0;   // of parameters, in host memory
  std::int64_t bytes() const { return parameters_bytes + rotary_bytes + lora_bytes + draft_bytes; }
};

// `quantisation` is how the checkpoint is stored and kept; nullptr: all in the model's type.
RankWeights rank_weights(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const model::Quantisation* quantisation);

// Whether experts are kept in MXFP4, whose kernels pad them and need no workspaces.
bool has_mxfp4_experts(const model::Architecture& architecture, const model::Quantisation* quantisation);

// The part of the network that one rank of a stage holds, as a network.
model::Architecture shard(const model::Architecture& architecture, const Options& options, const Stage& stage,
                          bool pads_experts);

}  // namespace ullage::engines::vllm
