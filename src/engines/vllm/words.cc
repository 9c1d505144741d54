#include "engines/vllm/words.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"

namespace ullage::engines::vllm {
namespace {

constexpr std::string_view kRaise = "Try increasing `gpu_memory_utilization` when initializing the engine.";
constexpr std::string_view kRaiseOrShorten =
    "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.";
// Host memory for blocks that V0 takes off the GPU (--swap-space's default).
constexpr std::int64_t kSwapBytes = 4 * kGiB;

std::string in_gib(std::int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string with_commas(std::int64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
  return out;
}

std::string too_short(const Budget& budget, const Options& options) {
  const StageBudget& stage = budget.tightest();
  const Capacity& capacity = budget.middle.capacity;
  if (!is_v1(options.version)) {
    return fmt::format(
        "The model's max seq len ({}) is larger than the maximum number of tokens that can be stored in KV cache ({}). "
        "{}",
        options.max_model_len, capacity.blocks * options.block_size, kRaiseOrShorten);
  }
  const std::int64_t needed = blocks_per_request(stage.cache, options, options.max_model_len) * stage.cache.block_bytes;
  const std::int64_t longest = longest_request(stage.cache, options, capacity.blocks);
  const std::string estimate =
      longest > 0 ? fmt::format("Based on the available memory, the estimated maximum model length is {}. ", longest)
                  : std::string();
  return fmt::format(
      "To serve at least one request with the models's max seq len ({}), ({} GiB KV cache is needed, which is larger "
      "than the available KV cache memory ({} GiB). {}{}",
      options.max_model_len, in_gib(needed), in_gib(budget.middle.pool_bytes), estimate, kRaiseOrShorten);
}

std::string overflow(const Options& options) {
  if (!is_v1(options.version) && !options.enforce_eager)
    return "torch.OutOfMemoryError: CUDA out of memory, while CUDA graphs are captured";
  return fmt::format(
      "CUDA out of memory occurred when warming up sampler with {} dummy requests. Please try lowering `max_num_seqs` "
      "or `gpu_memory_utilization` when initializing the engine.",
      std::min(options.max_num_seqs, options.max_num_batched_tokens));
}

}  // namespace

std::vector<std::string> log_lines(const Budget& budget, const Options& options) {
  const Outcome outcome = budget.middle.outcome;
  const bool has_pool = outcome == Outcome::starts || outcome == Outcome::too_few_states ||
                        outcome == Outcome::graphs_overflow ||
                        (outcome == Outcome::too_few_blocks && !is_v1(options.version));
  const CachePlan& plan = budget.tightest().cache;
  if (!has_pool || plan.block_bytes == 0) return {};
  const Capacity& capacity = budget.middle.capacity;
  if (is_v1(options.version)) {
    return {fmt::format("GPU KV cache size: {} tokens", with_commas(capacity.tokens_printed)),
            fmt::format("Maximum concurrency for {} tokens per request: {:.2f}x", with_commas(options.max_model_len),
                        capacity.max_concurrency)};
  }
  // Which device is named from the release on that has one executor for all.
  const std::string_view device = options.version >= Version{0, 7, 0} ? "cuda" : "GPU";
  return {fmt::format("# {} blocks: {}, # CPU blocks: {}", device, capacity.blocks, kSwapBytes / plan.block_bytes),
          fmt::format("Maximum concurrency for {} tokens per request: {:.2f}x", options.max_model_len,
                      capacity.max_concurrency)};
}

std::string refusal(const Budget& budget, const Options& options, std::int64_t used_bytes) {
  switch (budget.middle.outcome) {
    case Outcome::starts: return {};
    case Outcome::card_in_use:
      return fmt::format(
          "Free memory on device ({}/{} GiB) on startup is less than desired GPU memory utilization ({:g}, {} GiB). "
          "Decrease GPU memory utilization or reduce GPU memory used by other processes.",
          in_gib(budget.total_bytes - used_bytes - budget.middle.context_bytes), in_gib(budget.total_bytes),
          options.gpu_memory_utilization, in_gib(budget.requested_bytes));
    case Outcome::weights_too_large: return "torch.OutOfMemoryError: CUDA out of memory, while the weights are loaded";
    case Outcome::no_room: return fmt::format("No available memory for the cache blocks. {}", kRaise);
    case Outcome::too_few_blocks: return too_short(budget, options);
    case Outcome::too_few_states:
      return fmt::format(
          "max_num_seqs ({}) exceeds available Mamba cache blocks ({}). Each decode sequence requires one Mamba cache "
          "block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most {} or increase "
          "gpu_memory_utilization.",
          options.max_num_seqs, budget.middle.capacity.blocks, budget.middle.capacity.blocks);
    case Outcome::graphs_overflow: return overflow(options);
  }
  return {};
}

}  // namespace ullage::engines::vllm
