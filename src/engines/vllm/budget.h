// How vLLM shares out a GPU when it starts: a part of the card's memory is asked for, weights and what the profile run
// reached are taken off, and the rest becomes the pool of cache blocks.
//
// Sources: vllm/worker/worker.py (V0), vllm/v1/worker/gpu_worker.py and vllm/utils/mem_utils.py (V1).
#pragma once

#include <cstdint>
#include <vector>

#include "engines/vllm/cache_plan.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/weights.h"
#include "hardware/gpu.h"
#include "model/architecture.h"

namespace ullage::engines::vllm {

struct Span {
  std::int64_t low = 0;
  std::int64_t middle = 0;
  std::int64_t high = 0;
};

enum class Outcome : std::uint8_t {
  starts,
  card_in_use,      // less is free than is asked for
  no_room,          // weights and the profile run leave nothing for the cache
  too_few_blocks,   // one request of max_model_len does not fit into the pool
  too_few_states,   // fewer blocks than max_num_seqs sequences need for their states
  graphs_overflow,  // the pool leaves too little of the card for captured graphs
};

// One GPU of a pipeline stage; all of its tensor-parallel ranks are alike.
struct StageBudget {
  Stage stage;
  RankWeights weights;
  ProfilePeak peak;
  CachePlan cache;
  std::int64_t available_bytes = 0;  // for the cache, may be negative
};

struct Budget {
  std::int64_t total_bytes = 0;      // the card's
  std::int64_t requested_bytes = 0;  // total x gpu_memory_utilization, rounded up
  Span context;                      // CUDA's and NCCL's, outside of what is asked for
  Span non_torch;                    // inside
  GraphBytes graphs;
  bool graphs_charged = false;  // they are taken off what is asked for
  std::vector<StageBudget> stages;
  std::size_t tightest = 0;     // the stage whose pool has the fewest blocks: all have as many
  std::int64_t pool_bytes = 0;  // of the tightest stage
  Capacity capacity;
  Outcome outcome = Outcome::starts;
  std::int64_t process_bytes() const;  // of the tightest stage's GPU once graphs are captured
};

// `card` offers its usable_bytes, less `used_bytes` that others hold.
Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu& card,
                       std::int64_t used_bytes, const StoredBytes& stored);

}  // namespace ullage::engines::vllm
