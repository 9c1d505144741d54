#include "engines/budget/account.h"

#include <algorithm>
#include <vector>

#include "engines/budget/rules.h"
#include "engines/lmdeploy/pool.h"
#include "engines/mindie/pool.h"
#include "engines/tensorrt_llm/pool.h"
#include "engines/tgi/pool.h"
#include "hardware/process_memory.h"

namespace ullage::engines::budget {
namespace {

// Weights are cut and caches are sized as vLLM does it, which these engines follow.
vllm::Options cut_as(const Options& options) {
  vllm::Options out;
  out.dtype = options.dtype;
  out.kv_cache_dtype = options.cache;
  out.tensor_parallel_size = options.tensor_parallel;
  out.pipeline_parallel_size = options.pipeline_parallel;
  out.enable_expert_parallel = options.expert_parallel;
  out.max_model_len = options.longest;
  out.max_num_batched_tokens = options.prefill_tokens;
  out.max_num_seqs = options.max_batch;
  out.profiles_sampler = false;
  return out;
}

std::int64_t scales_of_token(const model::Architecture& architecture, const Options& options,
                             const vllm::Stage& stage) {
  std::int64_t heads = 0;
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer) {
    for (const model::TokenCache& cache : model::token_caches(architecture.kind_of(layer))) {
      const std::int64_t rows = cache.value_dim > 0 ? 2 : 1;
      heads += rows * std::max<std::int64_t>(1, cache.heads / options.tensor_parallel);
    }
  }
  return heads * options.scale_bytes;
}

// The forward pass of the largest step, and logits that the engine makes of all its tokens.
std::int64_t activations_of(const model::Architecture& architecture, const Options& options, const vllm::Stage& stage,
                            const hardware::Gpu* card) {
  const vllm::Options cut = cut_as(options);
  vllm::Surroundings around;
  around.gpu = card;
  around.family = architecture.family;
  const vllm::ProfilePeak peak = vllm::profile_peak(architecture, cut, stage, around);
  const double theirs = vllm::figure("forward_hidden_copies", around);
  const double own = rule(options, "forward_hidden_copies", card).value;
  const double row = static_cast<double>(options.prefill_tokens * architecture.hidden * size_of(options.dtype));
  const double logits = rule(options, "prefill_logit_bytes", card).value;
  const auto more = static_cast<std::int64_t>(
      (own - theirs) * row + logits * static_cast<double>(options.prefill_tokens * architecture.vocab));
  return peak.forward_bytes + peak.workspace_bytes + more;
}

Pool pool_of(const Options& options, const Holdings& held) {
  switch (options.engine) {
    case Engine::tensorrt_llm: return tensorrt_llm::pool(options, held);
    case Engine::mindie: return mindie::pool(options, held);
    case Engine::lmdeploy: return lmdeploy::pool(options, held);
    case Engine::tgi: return tgi::pool(options, held);
  }
  return {};
}

// The driver's own part is what others see, too: the guide of MindIE counts it among what an idle card holds.
void take_process(Holdings& held, const Options& options, const hardware::Gpu* card, vllm::Bound bound) {
  if (card == nullptr || options.engine == Engine::mindie) return;
  const hardware::ProcessMemory process = hardware::process_memory(card);
  const auto at = [&](const hardware::MeasuredBytes& part) {
    return bound == vllm::Bound::low ? part.low_bytes : bound == vllm::Bound::high ? part.high_bytes : part.bytes;
  };
  held.context = at(process.context);
  held.libraries = at(process.libraries);
}

void judge(Account& out, const Options& options, const hardware::Gpu* card) {
  const auto lacks = [&](Outcome outcome, std::int64_t bytes) {
    if (bytes <= 0 || out.outcome != Outcome::starts) return;
    out.outcome = outcome;
    out.short_bytes = bytes;
  };
  const std::int64_t block = out.held.token * options.block_size;
  const std::int64_t wanted = out.request_blocks * block;
  if (card != nullptr) lacks(Outcome::weights_too_large, -out.held.free_after_weights());
  if (out.pool.blocks <= 0) lacks(Outcome::no_room, std::max<std::int64_t>(1, wanted - out.pool.bytes));
  // The others shorten what they accept.
  const bool refuses_long = options.engine == Engine::tgi && options.length_given;
  if (refuses_long && out.max_concurrency < 1) lacks(Outcome::too_few_blocks, wanted - out.pool.blocks * block);
  if (card != nullptr) lacks(Outcome::graphs_overflow, out.process().middle - (out.held.total - out.held.used));
}

std::int64_t process_of(const Holdings& held, const Pool& pool) {
  const std::int64_t cache = pool.blocks > 0 ? pool.tokens * held.token : 0;
  return held.context + held.libraries + held.weights + cache + std::max(held.activations, pool.reserved);
}

}  // namespace

Span Account::process() const {
  const std::int64_t a = process_of(low, pool_high);
  const std::int64_t b = process_of(held, pool);
  const std::int64_t c = process_of(high, pool_low);
  return {std::min({a, b, c}), b, std::max({a, b, c})};
}

std::int64_t request_blocks(const Options& options, std::int64_t input_tokens, std::int64_t output_tokens) {
  if (options.contiguous) return 1;
  if (options.engine == Engine::mindie) return mindie::request_blocks(options, input_tokens, output_tokens);
  return (input_tokens + output_tokens + options.block_size - 1) / options.block_size;
}

Expected<Account> account(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                          std::int64_t used_bytes, const model::Quantisation* quantisation) {
  const vllm::Options cut = cut_as(options);
  const std::int64_t towers = architecture.encoder_layers;
  std::optional<Account> tightest;
  for (vllm::Stage stage : vllm::pipeline_stages(architecture.layer_count() - towers, options.pipeline_parallel)) {
    stage.first += towers;
    stage.last += towers;
    const auto plan = vllm::plan_cache(architecture, cut, stage.first, stage.last);
    if (!plan) return tl::unexpected<Error>(plan.error());
    for (const vllm::CacheGroup& group : plan->groups) {
      if (group.spec.use == vllm::CacheUse::state) {
        return fail(ErrorCode::unsupported, architecture.name,
                    "layers that keep a state under this engine are not in this version");
      }
    }
    Account out;
    out.weights = vllm::rank_weights(architecture, cut, stage, quantisation);
    out.held.total = card != nullptr ? card->usable_bytes : 0;
    out.held.used = used_bytes;
    out.held.weights = out.weights.bytes();
    out.held.token = plan->bytes_per_token + scales_of_token(architecture, options, stage);
    out.held.vocab = architecture.vocab;
    out.held.activations = activations_of(architecture, options, stage, card);
    out.low = out.high = out.held;
    take_process(out.held, options, card, vllm::Bound::middle);
    take_process(out.low, options, card, vllm::Bound::low);
    take_process(out.high, options, card, vllm::Bound::high);
    out.request_blocks = request_blocks(options, options.input_tokens, options.output_tokens);
    if (card == nullptr && !options.pool_bytes && !options.blocks) {
      out.pool = in_blocks(out.request_blocks * options.block_size * out.held.token, out.held, options.block_size);
      out.pool_low = out.pool_high = out.pool;
    } else {
      out.pool = pool_of(options, out.held);
      out.pool_low = pool_of(options, out.high);
      out.pool_high = pool_of(options, out.low);
    }
    if (!tightest || out.pool.blocks < tightest->pool.blocks) tightest = std::move(out);
  }
  Account& out = *tightest;
  if (out.request_blocks > 0)
    out.max_concurrency = static_cast<double>(out.pool.blocks) / static_cast<double>(out.request_blocks);
  const auto by_blocks = static_cast<std::int64_t>(out.max_concurrency);
  out.most_requests = options.max_batch > 0 ? std::min(by_blocks, options.max_batch) : by_blocks;
  judge(out, options, card);
  const Span process = out.process();
  const std::int64_t free = out.held.total - out.held.used;
  const bool starts = out.outcome == Outcome::starts;
  out.certain = card == nullptr || (starts ? process.high <= free && out.pool_low.blocks > 0
                                           : out.outcome != Outcome::graphs_overflow || process.low > free);
  return out;
}

}  // namespace ullage::engines::budget
