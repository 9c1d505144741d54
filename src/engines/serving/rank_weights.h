// What one GPU holds of a model's weights under an engine that cuts them as Megatron does: rows and columns by rank.
//
// Source: vllm/model_executor/layers/linear.py (rows and columns by tensor-parallel rank, heads of keys and values
// copied where there are fewer than ranks), vocab_parallel_embedding.py (rows padded to 64), rotary_embedding/ (one
// table of cosines and sines for each kind of rotary embedding; positions that are stretched linearly or by yarn have
// rows for the stretched length), distributed/utils.py (get_pp_indices). SGLang's layers are the same ones:
// sglang/srt/layers/linear.py, vocab_parallel_embedding.py and rotary_embedding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "model/architecture.h"
#include "model/quantisation.h"

namespace ullage::engines::serving {

// Adapters that requests may name: places for `slots` of them, each of `rank`, in every linear layer.
struct LoraSlots {
  std::int64_t slots = 0;  // 0: none
  std::int64_t rank = 0;
};

// Into how many parts the ranks of a stage cut what a layer has.
struct Shares {
  DType dtype = DType::bf16;
  DType rotary_dtype = DType::bf16;          // of the tables of cosines and sines
  std::int64_t vocabulary = 1;               // of the head
  std::int64_t embedding = 1;                // and of the embedding
  std::int64_t heads = 1;                    // and channels of recurrent layers
  std::int64_t ffn = 1;                      // of what every token goes through
  std::int64_t experts = 1;                  // ranks that share them out whole
  std::int64_t expert_ffn = 1;               // and those that cut each
  std::optional<std::int64_t> most_experts;  // of a layer on one rank; the others are in host memory
  bool rotary_tables_by_layer = false;       // one in each layer; otherwise layers share one
  double rotary_stretch = 1;                 // the configuration's factor for positions beyond those of pretraining
  std::int64_t cpu_offload_bytes = 0;        // of weights, on each GPU
  std::int64_t draft_layers = 0;             // of the model's own that draft (MTP)
  bool absorbs_latent = false;               // what turns latent vectors into keys and values is kept once more, plain
  LoraSlots lora;
};

// Layers of a pipeline stage: from `first` to `last`, which is not included. The first stage has a tower's layers, too.
struct Stage {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool embeds = true;  // it is the first stage
  bool heads = true;   // it is the last
};

// Which stages take layers that do not divide, from the back.
enum class LayersLeft : std::uint8_t {
  before_the_last,  // vLLM
  the_last,         // SGLang
};

std::vector<Stage> pipeline_stages(std::int64_t layers, std::int64_t stages,
                                   LayersLeft left_to = LayersLeft::before_the_last);

struct RankWeights {
  std::int64_t parameters_bytes = 0;  // without what is offloaded
  std::int64_t rotary_bytes = 0;      // tables up to the model's last position
  std::int64_t lora_bytes = 0;        // places for adapters
  std::int64_t draft_bytes = 0;       // of layers that draft
  std::int64_t absorbed_bytes = 0;    // of latent attention, in the form that decoding multiplies by
  std::int64_t offloaded_bytes = 0;   // of parameters, in host memory
  std::int64_t bytes() const { return parameters_bytes + rotary_bytes + lora_bytes + draft_bytes + absorbed_bytes; }
};

// `quantisation` is how the checkpoint is stored and kept; nullptr: all in the model's type.
RankWeights rank_weights(const model::Architecture& architecture, const Shares& shares, const Stage& stage,
                         const model::Quantisation* quantisation);

// Whether experts are kept in MXFP4, whose kernels pad them and need no workspaces.
bool has_mxfp4_experts(const model::Architecture& architecture, const model::Quantisation* quantisation);

// The part of the network that one rank of a stage holds, as a network.
model::Architecture shard(const model::Architecture& architecture, const Shares& shares, const Stage& stage,
                          bool pads_experts);

}  // namespace ullage::engines::serving
