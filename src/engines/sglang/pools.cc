#include "engines/sglang/pools.h"

#include <algorithm>

#include "base/bytes.h"
#include "engines/serving/arithmetic.h"

namespace ullage::engines::sglang {
namespace {

using serving::divide_up;

// Sparse attention's keys: a byte an element and a scale in fp32 for every 128. In eight bits its latent vectors have
// scales, too, and what is turned stays in 16. Source: sglang/srt/mem_cache/memory_pool.py (NSATokenToKVPool).
constexpr std::int64_t kScaleBytes = 4;
constexpr std::int64_t kElementsAScale = 128;

std::int64_t with_scales(std::int64_t elements) { return elements + elements / kElementsAScale * kScaleBytes; }

class Planner {
 public:
  Planner(const model::Architecture& architecture, const Options& options)
      : architecture_(architecture), options_(options) {}

  Expected<PoolPlan> run(std::int64_t first, std::int64_t last) {
    for (std::int64_t layer = first; layer < last; ++layer) {
      const model::LayerKind& kind = architecture_.kind_of(layer);
      if (kind.recurrent) add_state(*kind.recurrent);
      if (model::cache_owner(architecture_, layer) != layer) continue;
      if (auto added = add_tokens(kind); !added) return tl::unexpected<Error>(added.error());
    }
    if (last == architecture_.layer_count()) add_drafts();
    return std::move(out_);
  }

 private:
  std::int64_t element() const { return options_.kv_cache_dtype.block_bytes; }

  void add_latent(TokenBytes& out, const model::TokenCache& cache, bool sparse) {
    out_.latent = true;
    out.keys = cache.key_dim * element();
    out.counted += out.keys;
    const bool scaled = sparse && element() == 1 && options_.attention_backend != "trtllm";
    if (scaled) out.keys = with_scales(cache.key_dim - cache.rope_dim) + cache.rope_dim * size_of(DType::bf16);
  }

  // Before 0.5.8 values were taken for as wide as keys.
  void add_heads(TokenBytes& out, const model::TokenCache& cache) const {
    const std::int64_t heads = std::max<std::int64_t>(1, cache.heads / options_.attention_ranks());
    out.keys = heads * cache.key_dim * element();
    out.values = heads * cache.value_dim * element();
    out.counted = options_.version >= Version{0, 5, 8} ? out.keys + out.values : 2 * out.keys;
  }

  static void add_indexer(TokenBytes& out, const model::TokenCache& cache) {
    out.indexer = with_scales(cache.key_dim);
    out.counted += out.indexer;
  }

  Expected<void> add_tokens(const model::LayerKind& kind) {
    TokenBytes layer;
    bool keeps = false;
    bool windowed = false;
    for (const model::TokenCache& cache : model::token_caches(kind)) {
      if (cache.tokens_per_entry > 1 || cache.kind == model::TokenCacheKind::cross)
        return fail(ErrorCode::unsupported, architecture_.name,
                    "a cache of this kind under SGLang is not in this version");
      keeps = true;
      windowed = windowed || cache.window.has_value();
      if (cache.kind == model::TokenCacheKind::latent) add_latent(layer, cache, kind.attention.indexer_dim > 0);
      else if (cache.kind == model::TokenCacheKind::keys_values) add_heads(layer, cache);
      else add_indexer(layer, cache);
    }
    if (keeps) (windowed && options_.window_pool ? out_.windows : out_.full).push_back(layer);
    return {};
  }

  // Source: sglang/srt/configs/mamba_utils.py: convolutions in bf16, matrices in fp32; groups that do not divide are
  // copied until they do.
  void add_state(const model::Recurrent& state) {
    const std::int64_t ranks = options_.attention_ranks();
    const std::int64_t kept = state.conv_kernel > 0 ? state.conv_kernel - 1 : 0;
    out_.conv_bytes += (divide_up(state.conv_channels, ranks) * kept + state.shifted) * size_of(DType::bf16);
    out_.state_bytes += divide_up(state.heads, ranks) * state.rows * state.columns * size_of(DType::f32);
  }

  void add_drafts() {
    const std::vector<TokenBytes>& like = out_.full.empty() ? out_.windows : out_.full;
    for (std::int64_t i = 0; i < options_.draft_layers() && !like.empty(); ++i) out_.drafts.push_back(like.back());
  }

  const model::Architecture& architecture_;
  const Options& options_;
  PoolPlan out_;
};

std::int64_t counted(const std::vector<TokenBytes>& layers) {
  std::int64_t out = 0;
  for (const TokenBytes& layer : layers) out += layer.counted;
  return out;
}

std::int64_t paged(std::int64_t tokens, const Options& options) {
  return std::max<std::int64_t>(0, tokens) / options.page_size * options.page_size;
}

std::int64_t share(std::int64_t bytes, double ratio) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * ratio);
}

std::int64_t running_asked(const Options& options) {
  return options.max_running_requests.value_or(0) / options.attention_copies();
}

// What states take of `rest`, and how many there are.
std::int64_t take_states(const PoolPlan& plan, const Options& options, std::int64_t rest, PoolSizes& out) {
  if (plan.states() == 0) return rest;
  // States of drafted tokens lie beside the pool.
  if (options.drafting != Drafting::none)
    rest -= plan.states() * running_asked(options) * options.speculative_num_draft_tokens;
  if (options.max_mamba_cache_size) out.states = *options.max_mamba_cache_size / options.attention_copies();
  else if (options.disable_radix_cache && options.max_running_requests) out.states = running_asked(options);
  else {
    const double ratio = options.mamba_full_memory_ratio;
    out.states = std::max<std::int64_t>(0, share(rest, ratio / (1 + ratio))) / plan.states();
  }
  out.state_pool_bytes = out.states * plan.states();
  return rest - out.state_pool_bytes;
}

// Tokens of layers that keep all, where others have a pool of their own.
std::int64_t split_tokens(const PoolPlan& plan, const Options& options, std::int64_t rest) {
  const std::int64_t full = counted(plan.full);
  const std::int64_t windows = counted(plan.windows);
  const double ratio = options.swa_full_tokens_ratio;
  if (options.version >= kSplitsByBytes)
    return static_cast<std::int64_t>(static_cast<double>(rest) /
                                     (static_cast<double>(full) + ratio * static_cast<double>(windows)));
  // As if every layer were like one that keeps all, and windows once more on top.
  const auto layers = static_cast<std::int64_t>(plan.full.size() + plan.windows.size());
  const std::int64_t wide = plan.windows.front().counted != plan.full.front().counted ? windows : 0;
  const std::int64_t cell = plan.full.front().counted * layers + wide;
  const double parts = ratio * static_cast<double>(plan.windows.size()) + static_cast<double>(plan.full.size());
  return static_cast<std::int64_t>(static_cast<double>(paged(rest / cell, options) * layers) / parts);
}

// Before 0.5.7 drafts were given room beside what was measured.
std::int64_t with_draft_room(const Options& options, std::int64_t tokens) {
  if (options.drafting != Drafting::own_layers || options.version >= kNoDraftRoom) return tokens;
  const std::int64_t requests = running_asked(options);
  return tokens + requests * options.speculative_num_steps * options.speculative_eagle_topk +
         requests * options.speculative_num_draft_tokens + 100;
}

// PyTorch hands blocks of 1 MiB and more out in whole 2 MiB from 10 MiB on.
class Buffers {
 public:
  std::int64_t add(std::int64_t bytes) {
    constexpr std::int64_t kLarge = 10 * kMiB;
    rounding_ += bytes >= kLarge ? round_up(bytes, 2 * kMiB) - bytes : 0;
    return bytes;
  }
  std::int64_t rounding() const { return rounding_; }

 private:
  std::int64_t rounding_ = 0;
};

}  // namespace

std::int64_t PoolPlan::bytes_per_token() const {
  std::int64_t out = 0;
  for (const TokenBytes& layer : full) out += layer.bytes();
  for (const TokenBytes& layer : windows) out += layer.bytes();
  return out;
}

Expected<PoolPlan> plan_pools(const model::Architecture& architecture, const Options& options, std::int64_t first,
                              std::int64_t last) {
  return Planner(architecture, options).run(first, last);
}

PoolSizes pools_of_tokens(const PoolPlan& plan, const Options& options, PoolSizes sizes, std::int64_t tokens) {
  sizes.tokens = paged(tokens, options);
  if (plan.full.empty()) sizes.window_tokens = sizes.tokens;
  else if (!plan.windows.empty())
    sizes.window_tokens = paged(share(sizes.tokens, options.swa_full_tokens_ratio), options);
  sizes.fits = sizes.tokens > 0 || !plan.keeps_tokens();
  return sizes;
}

PoolSizes size_pools(const PoolPlan& plan, const Options& options, const hardware::Gpu* card, std::int64_t rest_bytes) {
  PoolSizes out;
  const std::int64_t rest = take_states(plan, options, rest_bytes, out);
  if (!plan.keeps_tokens()) return out;
  const bool split = !plan.full.empty() && !plan.windows.empty();
  std::int64_t tokens = 0;
  if (rest > 0)
    tokens = split ? split_tokens(plan, options, rest) : rest / (counted(plan.full) + counted(plan.windows));
  out.measured_tokens = paged(with_draft_room(options, tokens), options);
  // Without a card what was asked for is taken for what there is.
  const bool unbounded = card == nullptr && options.max_total_tokens.has_value();
  std::int64_t held = unbounded ? *options.max_total_tokens : out.measured_tokens;
  if (options.max_total_tokens) held = std::min(held, *options.max_total_tokens);
  return pools_of_tokens(plan, options, out, held);
}

Requests most_requests(const PoolPlan& plan, const Options& options, const hardware::Gpu* card,
                       const PoolSizes& sizes) {
  const Surroundings around = surroundings(options, card);
  const double by_length = static_cast<double>(sizes.tokens) / static_cast<double>(options.context_length) *
                           figure("requests_per_context", around);
  const std::int64_t estimated =
      std::clamp(static_cast<std::int64_t>(by_length), count("requests_least", around), count("requests_most", around));
  Requests out;
  if (options.max_running_requests) {
    out.rows = running_asked(options);
    if (options.version >= kLimitsRequests) out.rows = std::min(out.rows, estimated);
    out.running = out.rows;
  } else {
    const std::int64_t halves = sizes.tokens / 2;
    out.rows = options.version >= kLimitsRequests ? std::min(estimated, halves) : estimated;
    out.running = std::min(halves, out.rows);
  }
  if (plan.states() > 0) {
    const std::int64_t each = options.disable_radix_cache ? 1 : count("states_per_request", around);
    out.rows = std::min(out.rows, sizes.states / each);
    out.running = std::min(out.running, out.rows);
  }
  return out;
}

PoolBytes pool_bytes(const PoolPlan& plan, const Options& options, const PoolSizes& sizes, const Requests& requests) {
  constexpr std::int64_t kPlaceBytes = 4;
  constexpr std::int64_t kMoreThanContext = 4;
  PoolBytes out;
  Buffers buffers;
  // A page that nobody owns takes what padding writes.
  const std::int64_t full = sizes.tokens + options.page_size;
  const std::int64_t windows = sizes.window_tokens + options.page_size;
  for (const TokenBytes& layer : plan.full) {
    out.keys += buffers.add(layer.keys * full);
    out.values += buffers.add(layer.values * full);
    out.indexer += buffers.add(layer.indexer * full);
  }
  for (const TokenBytes& layer : plan.windows) {
    out.window_keys += buffers.add(layer.keys * windows);
    out.window_values += buffers.add(layer.values * windows);
  }
  for (const TokenBytes& layer : plan.drafts) out.drafts += buffers.add(layer.bytes() * full);
  if (plan.states() > 0) {
    out.conv_states = buffers.add(plan.conv_bytes * (sizes.states + 1));
    const std::int64_t drafted = options.drafting == Drafting::none
                                     ? 0
                                     : (requests.rows + 1) * options.speculative_num_draft_tokens * plan.states();
    out.states = buffers.add(plan.state_bytes * (sizes.states + 1)) + drafted;
  }
  const std::int64_t places = options.context_length + kMoreThanContext + options.speculative_num_draft_tokens;
  out.request_table = buffers.add(requests.rows * places * kPlaceBytes);
  out.rounding = buffers.rounding();
  return out;
}

std::int64_t requests_held(const PoolPlan& plan, const Options& options, const PoolSizes& sizes, std::int64_t tokens,
                           std::int64_t window) {
  const std::int64_t each = divide_up(std::max<std::int64_t>(1, tokens), options.page_size) * options.page_size;
  std::int64_t out = std::int64_t{1} << 40;
  if (!plan.full.empty()) out = sizes.tokens / each;
  if (!plan.windows.empty()) {
    // What is behind the window is given back while a request goes on; what a chunk puts in is held whole.
    const std::int64_t seen = std::min(each, window + options.prefill_tokens());
    out = std::min(out, sizes.window_tokens / std::max<std::int64_t>(1, seen));
  }
  if (plan.states() > 0) out = std::min(out, sizes.states);
  return out;
}

}  // namespace ullage::engines::sglang
