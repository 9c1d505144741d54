// What decides memory in `sglang.launch_server`, under SGLang's own names: as it was asked for, and as resolved for a
// release and a card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/expected.h"
#include "base/json.h"
#include "engines/serving/rank_weights.h"
#include "engines/sglang/rules.h"
#include "engines/sglang/version.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/cache.h"

namespace ullage::engines::sglang {

enum class Drafting : std::uint8_t {
  none,
  own_layers,  // EAGLE and NEXTN with the layers that came with the model
  prompt,      // NGRAM
};

struct Options {
  Version version = kNewest;
  DType dtype = DType::bf16;
  model::CacheType kv_cache_dtype;  // of one element a block
  std::int64_t context_length = 0;
  double mem_fraction_static = 0.88;
  std::int64_t chunked_prefill_size = 8192;  // -1: whole prompts are put in
  std::int64_t max_prefill_tokens = 16384;
  std::optional<std::int64_t> max_running_requests;
  std::optional<std::int64_t> max_total_tokens;
  std::int64_t cuda_graph_max_bs = 160;
  bool disable_cuda_graph = false;
  bool piecewise_graphs = false;  // of prefill, too
  std::int64_t page_size = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  bool enable_dp_attention = false;
  bool disable_radix_cache = false;
  std::string attention_backend;  // empty: the release's choice
  Drafting drafting = Drafting::none;
  std::int64_t speculative_num_steps = 0;
  std::int64_t speculative_eagle_topk = 0;
  std::int64_t speculative_num_draft_tokens = 0;
  std::optional<std::int64_t> kt_num_gpu_experts;  // of a layer; the others are in host memory (KTransformers)
  bool window_pool = false;                        // layers with windows have a pool of their own
  double swa_full_tokens_ratio = 0.8;              // of tokens in that pool to those in the other
  double mamba_full_memory_ratio = 0.9;            // of states to keys and values, in bytes
  std::optional<std::int64_t> max_mamba_cache_size;
  std::int64_t cpu_offload_bytes = 0;
  double rotary_stretch = 1;
  std::string family;  // of the model, as rules call it

  // Ranks that cut attention: under data-parallel attention each copy of it has some of them.
  std::int64_t attention_ranks() const { return enable_dp_attention ? std::max<std::int64_t>(1, tp / dp) : tp; }
  // Pools that share the ranks of one copy of the model.
  std::int64_t attention_copies() const { return enable_dp_attention ? dp : 1; }
  // Copies of the model.
  std::int64_t copies() const { return enable_dp_attention ? 1 : dp; }
  std::int64_t gpus() const { return tp * pp * copies(); }
  // Tokens that one forward pass puts in.
  std::int64_t prefill_tokens() const { return chunked_prefill_size > 0 ? chunked_prefill_size : max_prefill_tokens; }
  std::int64_t draft_layers() const { return drafting == Drafting::own_layers ? 1 : 0; }
};

// Flags as given; what is absent takes the release's default.
struct Flags {
  std::optional<std::string> engine_version;
  std::optional<std::string> dtype;
  std::optional<std::string> kv_cache_dtype;
  std::optional<std::string> attention_backend;
  std::optional<std::string> speculative_algorithm;
  std::optional<std::int64_t> context_length;
  std::optional<std::int64_t> chunked_prefill_size;
  std::optional<std::int64_t> max_prefill_tokens;
  std::optional<std::int64_t> max_running_requests;
  std::optional<std::int64_t> max_total_tokens;
  std::optional<std::int64_t> cuda_graph_max_bs;
  std::optional<std::int64_t> page_size;
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> dp;
  std::optional<std::int64_t> ep;
  std::optional<std::int64_t> kt_num_gpu_experts;
  std::optional<std::int64_t> max_mamba_cache_size;
  std::optional<std::int64_t> speculative_num_steps;
  std::optional<std::int64_t> speculative_eagle_topk;
  std::optional<std::int64_t> speculative_num_draft_tokens;
  std::optional<double> mem_fraction_static;
  std::optional<double> swa_full_tokens_ratio;
  std::optional<double> mamba_full_memory_ratio;
  std::optional<double> cpu_offload_gb;
  bool enable_dp_attention = false;
  bool disable_radix_cache = false;
  bool disable_cuda_graph = false;
};

// What the flags say of the model beside them.
struct Given {
  const model::Architecture& architecture;
  const Json& config;                   // that it was built from: type of the weights, stretched positions, a tower
  const hardware::Gpu* card = nullptr;  // none: unknown
};

struct Resolved {
  Options options;
  bool newer_than_known = false;  // the release is behind the newest whose rules were read
};

// Fails as SGLang does on sizes that cannot be meant, and with ErrorCode::unsupported on what is not modelled.
Expected<Resolved> resolve(const Flags& flags, const Given& given);

Surroundings surroundings(const Options& options, const hardware::Gpu* card, Bound bound = Bound::middle);

// The release's mem_fraction_static, before what a tower takes off it.
double automatic_fraction(const Options& options, const hardware::Gpu* card, bool latent);
// The factor for models that see.
double multimodal_factor(const Options& options, const Json& config);

// How weights are cut.
serving::Shares shares_of(const Options& options);

}  // namespace ullage::engines::sglang
