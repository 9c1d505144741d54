// What decides memory in `vllm serve`, under vLLM's own names: as it was asked for, and as resolved for a release and a
// card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/expected.h"
#include "base/json.h"
#include "engines/serving/rank_weights.h"
#include "engines/vllm/version.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/cache.h"

namespace ullage::engines::vllm {

// vllm's MambaCacheMode: which states of a sequence are kept for its prefix to be found again.
enum class StateCaching : std::uint8_t {
  none,     // the current one
  aligned,  // and that of the last whole block
};

using serving::LoraSlots;

// Why a release that has both engines takes the first.
enum class FirstEngine : std::uint8_t {
  no,
  by_release,  // it has no other
  by_model,    // the other does not know such a model
  by_card,     // or such a card
  by_env,      // VLLM_USE_V1=0
};

struct Options {
  Version version = kNewest;  // whose rules hold
  Version release = kNewest;  // as it was asked for
  FirstEngine first_engine = FirstEngine::no;
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
  std::int64_t data_parallel_size = 1;
  std::int64_t decode_context_parallel_size = 1;
  bool enable_expert_parallel = false;
  bool enforce_eager = false;
  StateCaching state_caching = StateCaching::none;
  std::int64_t speculative_tokens = 0;  // drafted for each step
  std::int64_t draft_layers = 0;        // of the model's own that draft (MTP)
  bool profiles_sampler = true;         // V0 in chunks: the profile run's prompts do not end
  bool encodes_images = false;          // the profile run feeds an encoder, too
  bool spreads_latents = false;         // VLLM_MLA_DISABLE: latent vectors are spread out to heads, which are kept
  std::int64_t largest_capture = 512;   // batch that graphs are captured for, where sequences and tokens allow it
  std::vector<std::int64_t> cudagraph_capture_sizes;  // empty: the release's
  LoraSlots lora;
  double rotary_stretch = 1;               // the configuration's factor for positions beyond those of pretraining
  std::int64_t cpu_offload_bytes = 0;      // of weights, on each GPU
  std::optional<bool> graphs_in_budget;    // VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS
  std::optional<bool> flashinfer_sampler;  // VLLM_USE_FLASHINFER_SAMPLER

  // GPUs that hold one copy of the model.
  std::int64_t gpus_per_copy() const { return tensor_parallel_size * pipeline_parallel_size; }
  std::int64_t gpus() const { return gpus_per_copy() * data_parallel_size; }
  // Ranks that share a layer's experts: those of all copies.
  std::int64_t expert_ranks() const { return tensor_parallel_size * data_parallel_size; }
};

// Flags and environment variables as given; what is absent takes the release's default.
struct Flags {
  std::optional<std::string> engine_version;
  std::optional<std::string> dtype;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::int64_t> max_model_len;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> max_num_seqs;
  std::optional<std::int64_t> max_num_batched_tokens;
  std::optional<double> gpu_memory_utilization;
  std::optional<std::int64_t> kv_cache_memory_bytes;
  std::optional<std::int64_t> tensor_parallel_size;
  std::optional<std::int64_t> pipeline_parallel_size;
  std::optional<std::int64_t> data_parallel_size;
  std::optional<std::int64_t> decode_context_parallel_size;
  std::optional<std::string> cudagraph_capture_sizes;  // "1 2 4", "1,2,4" or "[1, 2, 4]"
  std::optional<std::string> speculative_config;       // a JSON object
  std::optional<std::string> limit_mm_per_prompt;      // a JSON object
  std::optional<std::int64_t> max_loras;
  std::optional<std::int64_t> max_lora_rank;
  std::optional<double> cpu_offload_gb;
  bool enable_expert_parallel = false;
  bool enable_prefix_caching = false;
  bool enforce_eager = false;
  bool enable_lora = false;
  std::vector<std::pair<std::string, std::string>> env;
};

// What the flags say of the model beside them.
struct Given {
  const model::Architecture& architecture;
  const Json& config;                   // that it was built from: type of the weights, stretched positions
  const hardware::Gpu* card = nullptr;  // none: unknown
};

struct Resolved {
  Options options;
  bool newer_than_known = false;         // the release is behind the newest whose rules were read
  bool older_than_known = false;         // or before the oldest
  std::vector<std::string> ignored_env;  // variables that decide nothing here
  // Flags that do nothing without another, and that one.
  std::vector<std::pair<std::string, std::string>> idle_flags;
};

// Fails as vLLM does on sizes that cannot be meant, and with ErrorCode::unsupported on what is not modelled.
Expected<Resolved> resolve(const Flags& flags, const Given& given);

}  // namespace ullage::engines::vllm
