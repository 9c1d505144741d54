// How vLLM lays keys, values and states out in blocks of one pool, and how many requests the pool carries.
//
// Sources, by release: vllm/worker/cache_engine.py (V0, to 0.7); vllm/v1/core/kv_cache_utils.py,
// vllm/v1/kv_cache_interface.py and vllm/platforms/interface.py (V1).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/expected.h"
#include "engines/serving/workload.h"
#include "engines/vllm/options.h"
#include "model/architecture.h"

namespace ullage::engines::vllm {

enum class CacheUse : std::uint8_t {
  full,     // blocks for every token
  sliding,  // for a window of them, and for what is being put in
  chunked,  // for a chunk, likewise
  state,    // one block of fixed size for each sequence
};

// What a layer keeps on one GPU.
struct CacheSpec {
  CacheUse use = CacheUse::full;
  std::int64_t token_bytes = 0;  // of one token; a state has none
  std::int64_t state_bytes = 0;  // of one sequence
  std::int64_t width = 0;        // of the window or chunk, in tokens
  friend bool operator==(const CacheSpec&, const CacheSpec&) = default;
};

// Layers of one spec that draw blocks together: a block of the group holds so many tokens of all its layers.
struct CacheGroup {
  CacheSpec spec;
  std::int64_t layers = 0;      // real ones; a group may be padded to the others' count
  std::int64_t block_size = 0;  // tokens
};

struct CachePlan {
  std::vector<CacheGroup> groups;  // empty: nothing is kept
  std::int64_t block_size = 0;     // tokens of a block of the attention layers
  std::int64_t block_bytes = 0;    // of one block of the pool, all layers of a group
  std::int64_t padding_layers = 0;
  std::int64_t bytes_per_token = 0;  // of one sequence while no window is full, without padding
  std::int64_t states_beside = 0;    // bytes of one sequence's states that lie outside of the pool (V0)
};

// For the layers of one pipeline stage, `first` to `last` (not included). Unsupported: kinds of cache that this engine
// lays out in a way of its own.
Expected<CachePlan> plan_cache(const model::Architecture& architecture, const Options& options, std::int64_t first,
                               std::int64_t last);

// Blocks that one request of `tokens` draws from the pool.
std::int64_t blocks_per_request(const CachePlan& plan, const Options& options, std::int64_t tokens);

// What the pool carries.
struct Capacity {
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;          // of requests of max_model_len
  std::int64_t tokens_printed = 0;  // as the release's log has them
  double max_concurrency = 0;       // requests of max_model_len
};

Capacity capacity(const CachePlan& plan, const Options& options, std::int64_t pool_bytes);

using serving::Workload;

struct WorkloadFit {
  std::int64_t blocks_per_request = 0;
  std::int64_t most_requests = 0;  // at once, when all have all their tokens: by blocks and by max_num_seqs
  bool by_sequences = false;       // max_num_seqs is what limits them
};

WorkloadFit fit_workload(const CachePlan& plan, const Options& options, std::int64_t blocks, const Workload& workload);

Capacity capacity_of_blocks(const CachePlan& plan, const Options& options, std::int64_t blocks);

}  // namespace ullage::engines::vllm
