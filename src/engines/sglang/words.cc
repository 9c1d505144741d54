#include "engines/sglang/words.h"

#include <fmt/core.h>

#include "base/bytes.h"

namespace ullage::engines::sglang {
namespace {

// It says GB and means GiB.
std::string gb(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string pool_line(std::int64_t tokens, std::int64_t keys, std::int64_t values) {
  if (values == 0) return fmt::format("KV Cache is allocated. #tokens: {}, KV size: {}", tokens, gb(keys));
  return fmt::format("KV Cache is allocated. #tokens: {}, K size: {}, V size: {}", tokens, gb(keys), gb(values));
}

void add_pools(std::vector<std::string>& out, const StageBudget& stage, const Options& options) {
  const PoolSizes& sizes = stage.sizes;
  const PoolBytes& pools = stage.pools;
  // Both are printed without the space that the others have.
  if (stage.plan.states() > 0)
    out.push_back(
        fmt::format("Mamba Cache is allocated. max_mamba_cache_size: {}, conv_state size: {:.2f}GB, "
                    "ssm_state size: {:.2f}GB",
                    sizes.states, static_cast<double>(pools.conv_states) / static_cast<double>(kGiB),
                    static_cast<double>(pools.states) / static_cast<double>(kGiB)));
  if (!stage.plan.windows.empty() && !stage.plan.full.empty()) {
    const std::string_view use = options.version < Version{0, 5, 8} ? "Use Sliding window" : "Use sliding window";
    out.push_back(fmt::format("{} memory pool. full_layer_tokens={}, swa_layer_tokens={}", use, sizes.tokens,
                              sizes.window_tokens));
    out.push_back(pool_line(sizes.window_tokens, pools.window_keys, pools.window_values));
  }
  if (!stage.plan.full.empty()) out.push_back(pool_line(sizes.tokens, pools.keys + pools.indexer, pools.values));
}

std::string ready_line(const Budget& budget, const Options& options) {
  const Settled& m = budget.middle;
  std::string out = fmt::format(
      "max_total_num_tokens={}, chunked_prefill_size={}, max_prefill_tokens={}, max_running_requests={}, "
      "context_len={}",
      m.at().sizes.tokens, options.chunked_prefill_size, options.max_prefill_tokens, m.requests.running,
      options.context_length);
  if (options.version >= kPrintsFreeMemory && budget.total_bytes > 0)
    out += ", available_gpu_mem=" + gb(m.free_bytes(m.tightest));
  return out;
}

std::string not_enough(const Options& options) {
  std::string out = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.";
  if (options.version >= Version{0, 5, 11})
    out += fmt::format(" Current value: mem_fraction_static={:.4g}", options.mem_fraction_static);
  else if (options.version >= kNamesFraction)
    out += fmt::format(" Current value: self.server_args.mem_fraction_static={:.4g}", options.mem_fraction_static);
  return out;
}

}  // namespace

std::vector<std::string> log_lines(const Budget& budget, const Options& options) {
  const Settled& m = budget.middle;
  std::vector<std::string> out;
  if (budget.total_bytes > 0) {
    out.push_back("Load weight begin. avail mem=" + gb(m.before_bytes));
    if (m.outcome == Outcome::weights_too_large) return out;
    out.push_back(fmt::format("Load weight end. avail mem={}, mem usage={}.",
                              gb(m.before_bytes - m.at().weights.bytes()), gb(m.at().weights.bytes())));
  }
  if (m.outcome == Outcome::no_room || m.outcome == Outcome::weights_too_large) return out;
  add_pools(out, m.at(), options);
  if (budget.total_bytes > 0)
    out.push_back("Memory pool end. avail mem=" + gb(m.before_bytes - m.at().weights.bytes() - m.at().pools.bytes()));
  if (m.outcome == Outcome::starts || m.outcome == Outcome::prefill_overflow)
    out.push_back(ready_line(budget, options));
  return out;
}

std::string refusal(const Budget& budget, const Options& options) {
  switch (budget.middle.outcome) {
    case Outcome::starts: return {};
    case Outcome::weights_too_large: return "torch.OutOfMemoryError: CUDA out of memory, while the weights are loaded";
    case Outcome::no_room: return not_enough(options);
    case Outcome::too_few_states: return "AssertionError: max_running_request is zero";
    case Outcome::graphs_overflow:
      return "Exception: Capture cuda graph failed: CUDA out of memory. Possible solutions: 1. set "
             "--mem-fraction-static to a smaller value (e.g., 0.8 or 0.7) 2. set --cuda-graph-max-bs to a smaller "
             "value (e.g., 16) 3. disable torch compile by not using --enable-torch-compile 4. disable CUDA graph by "
             "--disable-cuda-graph. (Not recommended. Huge performance loss)";
    case Outcome::prefill_overflow:
      return "torch.OutOfMemoryError: CUDA out of memory, while the first long prompt is put in";
  }
  return {};
}

}  // namespace ullage::engines::sglang
