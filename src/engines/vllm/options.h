// What decides memory in `vllm serve`, under vLLM's own names, as resolved for a release and a card.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "engines/vllm/version.h"
#include "model/cache.h"

namespace ullage::engines::vllm {

// vllm's MambaCacheMode: which states of a sequence are kept for its prefix to be found again.
enum class StateCaching : std::uint8_t {
  none,     // the current one
  aligned,  // and that of the last whole block
};

struct Options {
  Version version = kNewest;
  DType dtype = DType::bf16;
  model::CacheType kv_cache_dtype;  // of one element a block
  std::int64_t max_model_len = 0;
  std::int64_t block_size = 16;
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 2048;
  double gpu_memory_utilization = 0.9;
  std::optional<std::int64_t> kv_cache_memory_bytes;
  std::int64_t tensor_parallel_size = 1;
  std::int64_t pipeline_parallel_size = 1;
  std::int64_t decode_context_parallel_size = 1;
  bool enable_expert_parallel = false;
  bool enforce_eager = false;
  StateCaching state_caching = StateCaching::none;
  std::int64_t speculative_tokens = 0;  // drafted for each step
};

}  // namespace ullage::engines::vllm
