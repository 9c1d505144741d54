// What SGLang keeps of tokens and sequences: pools that are allocated once, of as many tokens as the memory that is
// left to them holds.
//
// Sources: sglang/srt/model_executor/model_runner.py (profile_max_num_token, init_memory_pool) to 0.5.6;
// model_runner_kv_cache_mixin.py and pool_configurator.py since; sglang/srt/mem_cache/memory_pool.py.
#pragma once

#include <cstdint>
#include <vector>

#include "base/expected.h"
#include "engines/sglang/options.h"
#include "model/architecture.h"

namespace ullage::engines::sglang {

// Bytes of one token in one layer, on one GPU.
struct TokenBytes {
  std::int64_t keys = 0;     // or the latent vector
  std::int64_t values = 0;   // none of latent attention
  std::int64_t indexer = 0;  // keys of sparse attention's choice
  std::int64_t counted = 0;  // as the engine reckons with them when it sizes the pool
  std::int64_t bytes() const { return keys + values + indexer; }
};

// What the layers of one pipeline stage keep.
struct PoolPlan {
  std::vector<TokenBytes> full;     // layers whose tokens are kept all
  std::vector<TokenBytes> windows;  // those with a pool of their own
  std::vector<TokenBytes> drafts;   // layers that draft: they have as many tokens as `full`
  std::int64_t conv_bytes = 0;      // of one sequence: inputs of convolutions of all recurrent layers
  std::int64_t state_bytes = 0;     // and their matrices
  bool latent = false;
  std::int64_t states() const { return conv_bytes + state_bytes; }
  std::int64_t bytes_per_token() const;  // of one sequence while no window is full
  bool keeps_tokens() const { return !full.empty() || !windows.empty(); }
};

// For layers `first` to `last` (not included). Unsupported: caches that this engine lays out in a way of its own.
Expected<PoolPlan> plan_pools(const model::Architecture& architecture, const Options& options, std::int64_t first,
                              std::int64_t last);

struct PoolSizes {
  std::int64_t measured_tokens = 0;  // what the memory would hold: max_total_num_tokens before --max-total-tokens
  std::int64_t tokens = 0;           // of layers that keep all: max_total_num_tokens
  std::int64_t window_tokens = 0;    // of layers with a pool of their own
  std::int64_t states = 0;           // max_mamba_cache_size
  std::int64_t state_pool_bytes = 0;
  bool fits = true;  // some token is held, where tokens are kept
};

// `rest_bytes` is what is left to the pools, may be negative; `most_tokens` is what other stages hold.
PoolSizes size_pools(const PoolPlan& plan, const Options& options, const hardware::Gpu* card, std::int64_t rest_bytes);

// As above, of so many tokens.
PoolSizes pools_of_tokens(const PoolPlan& plan, const Options& options, PoolSizes sizes, std::int64_t tokens);

// Requests at once: as the engine's line says, and rows of the table of their tokens' places.
struct Requests {
  std::int64_t running = 0;
  std::int64_t rows = 0;
};
Requests most_requests(const PoolPlan& plan, const Options& options, const hardware::Gpu* card, const PoolSizes& sizes);

// What lies in memory, in whole blocks of 2 MiB a buffer where PyTorch's allocator hands out so.
struct PoolBytes {
  std::int64_t keys = 0;  // as the engine prints them, without drafting layers
  std::int64_t values = 0;
  std::int64_t indexer = 0;
  std::int64_t window_keys = 0;
  std::int64_t window_values = 0;
  std::int64_t conv_states = 0;
  std::int64_t states = 0;
  std::int64_t drafts = 0;
  std::int64_t request_table = 0;
  std::int64_t rounding = 0;  // of all of these
  std::int64_t tokens() const { return keys + values + indexer + window_keys + window_values + drafts; }
  std::int64_t bytes() const { return tokens() + conv_states + states + request_table + rounding; }
};
PoolBytes pool_bytes(const PoolPlan& plan, const Options& options, const PoolSizes& sizes, const Requests& requests);

// Requests of so many tokens that the pools carry at once.
std::int64_t requests_held(const PoolPlan& plan, const Options& options, const PoolSizes& sizes, std::int64_t tokens,
                           std::int64_t window);

}  // namespace ullage::engines::sglang
