// How vLLM shares out a GPU when it starts: a part of the card's memory is asked for, weights and what the profile run
// reached are taken off, and the rest becomes the pool of cache blocks.
//
// Sources: vllm/worker/worker.py (V0), vllm/v1/worker/gpu_worker.py and vllm/utils/mem_utils.py (V1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/vllm/cache_plan.h"
#include "engines/vllm/profile.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/weights.h"
#include "hardware/gpu.h"
#include "model/architecture.h"

namespace ullage::engines::vllm {

struct Span {
  std::int64_t low = 0;
  std::int64_t middle = 0;
  std::int64_t high = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

enum class Outcome : std::uint8_t {
  starts,
  card_in_use,        // less is free than is asked for
  weights_too_large,  // they do not fit into the card: out of memory while they are loaded
  no_room,            // weights and the profile run leave nothing for the cache
  too_few_blocks,     // one request of max_model_len does not fit into the pool
  too_few_states,     // fewer blocks than max_num_seqs sequences need for their states
  graphs_overflow,    // the pool leaves too little of the card for captured graphs
};

// One GPU of a pipeline stage; all of its tensor-parallel ranks are alike.
struct StageBudget {
  Stage stage;
  RankWeights weights;
  CachePlan cache;
  ProfilePeak peak;
  std::int64_t graph_bytes = 0;
  std::int64_t fragmentation_bytes = 0;  // reserved by PyTorch, in pieces that nothing fits into
  std::int64_t available_bytes = 0;      // for the cache, may be negative
};

// What one end of the measured figures makes of it.
struct Settled {
  std::int64_t context_bytes = 0;         // CUDA's and NCCL's, outside of what is asked for
  std::int64_t non_torch_bytes = 0;       // inside
  std::int64_t graph_estimate_bytes = 0;  // what the engine itself expects of graphs
  std::vector<StageBudget> stages;
  std::size_t tightest = 0;     // the stage whose pool has the fewest blocks: all have as many
  std::int64_t pool_bytes = 0;  // of the tightest stage; may be negative
  Capacity capacity;
  Outcome outcome = Outcome::starts;
  std::int64_t short_bytes = 0;  // of each GPU, by which a start is refused
  // Of one GPU of that stage once graphs are captured and the largest batch runs.
  std::int64_t process_bytes(std::size_t stage) const;
  // The most that a start reaches behind the profile run: V0 runs no batch once its graphs are captured.
  std::int64_t start_bytes(std::size_t stage, const Options& options) const;
  std::int64_t cache_bytes(std::size_t stage) const;
};

struct Budget {
  std::int64_t total_bytes = 0;      // the card's; 0: no card was named
  std::int64_t requested_bytes = 0;  // total x gpu_memory_utilization, rounded up
  bool graphs_charged = false;       // they are taken off what is asked for
  bool estimates_graphs = false;     // the release expects them, whether or not it charges them
  Settled middle;
  Settled low;   // every measured figure at its lowest
  Settled high;  // and at its highest

  const StageBudget& tightest() const { return middle.stages[middle.tightest]; }
  Span process() const;
  Span pool() const;  // bytes of blocks of the tightest stage; high where figures are low
  bool certain() const { return low.outcome == middle.outcome && high.outcome == middle.outcome; }
};

// `card` offers its usable_bytes, less `used_bytes` that others hold. Without a card and without kv_cache_memory_bytes
// the pool is what one request of max_model_len needs.
Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                       std::int64_t used_bytes, const model::Quantisation* quantisation);

// The longest max_model_len that the pool can hold one request of, up to the one asked for; 0: none.
std::int64_t longest_request(const CachePlan& plan, const Options& options, std::int64_t blocks);

}  // namespace ullage::engines::vllm
