#include "engines/vllm/cache_plan.h"

#include <algorithm>
#include <string>

#include "engines/serving/arithmetic.h"

namespace ullage::engines::vllm {
namespace {

using serving::divide_up;

// Sparse attention's keys in eight bits: so many bytes of a token's latent vector (512 of them, four scales in fp32,
// 64 turned elements in bf16), and of the indexer's key (a byte an element and a scale in fp32), whatever the cache's
// type. Source: vllm/v1/attention/backends/mla/flashmla_sparse.py and indexer.py.
constexpr std::int64_t kScaleBytes = 4;
constexpr std::int64_t kElementsAScale = 128;

class SpecReader {
 public:
  SpecReader(const model::Architecture& architecture, const Options& options)
      : architecture_(architecture), options_(options) {}

  Expected<std::vector<CacheSpec>> read(std::int64_t first, std::int64_t last) const {
    std::vector<CacheSpec> out;
    for (std::int64_t layer = first; layer < last; ++layer) {
      const model::LayerKind& kind = architecture_.kind_of(layer);
      if (kind.recurrent) out.push_back(of_state(*kind.recurrent));
      if (model::cache_owner(architecture_, layer) != layer) continue;
      const bool sparse = kind.attention.indexer_dim > 0;
      for (model::TokenCache cache : model::token_caches(kind)) {
        if (cache.kind == model::TokenCacheKind::latent && options_.spreads_latents) cache = spread(kind.attention);
        const auto spec = of_tokens(cache, sparse);
        if (!spec) return tl::unexpected<Error>(spec.error());
        out.push_back(*spec);
      }
    }
    if (last == architecture_.layer_count()) add_drafting(out);
    return out;
  }

 private:
  // Layers that draft keep what the last one that attends does.
  void add_drafting(std::vector<CacheSpec>& specs) const {
    const auto attends =
        std::find_if(specs.rbegin(), specs.rend(), [](const CacheSpec& spec) { return spec.use != CacheUse::state; });
    if (attends == specs.rend()) return;
    const CacheSpec spec = *attends;
    for (std::int64_t i = 0; i < options_.draft_layers; ++i) specs.push_back(spec);
  }

  // Keys of all heads, and values padded to them. Source: vllm/model_executor/models/deepseek_v2.py
  // (DeepseekV2Attention); heads of flash attention were of 256 before 0.7.
  model::TokenCache spread(const model::Attention& attention) const {
    constexpr std::int64_t kPaddedHead = 256;
    const std::int64_t own = attention.latent.nope_dim + attention.latent.rope_dim;
    model::TokenCache out;
    out.heads = attention.heads;
    out.key_dim = out.value_dim = options_.release < kLatentCache ? std::max(own, kPaddedHead) : own;
    return out;
  }

  std::int64_t local(std::int64_t heads) const {
    return std::max<std::int64_t>(1, heads / options_.tensor_parallel_size);
  }

  std::int64_t elements_bytes(std::int64_t elements) const {
    return elements / options_.kv_cache_dtype.block * options_.kv_cache_dtype.block_bytes;
  }

  std::int64_t token_bytes(const model::TokenCache& cache, bool sparse) const {
    const bool eight_bits = options_.kv_cache_dtype.block_bytes == 1;
    switch (cache.kind) {
      case model::TokenCacheKind::latent: {
        if (!sparse || !eight_bits) return elements_bytes(cache.key_dim);
        const std::int64_t rank = cache.key_dim - cache.rope_dim;
        return rank + rank / kElementsAScale * kScaleBytes + cache.rope_dim * size_of(DType::bf16);
      }
      case model::TokenCacheKind::indexer: return cache.key_dim + cache.key_dim / kElementsAScale * kScaleBytes;
      case model::TokenCacheKind::keys_values:
      case model::TokenCacheKind::cross: break;
    }
    return local(cache.heads) * elements_bytes(cache.key_dim + cache.value_dim);
  }

  Expected<CacheSpec> of_tokens(const model::TokenCache& cache, bool sparse) const {
    if (cache.tokens_per_entry > 1)
      return fail(ErrorCode::unsupported, architecture_.name, "vLLM's compressed cache is not in this version");
    if (cache.kind == model::TokenCacheKind::cross && is_v1(options_.version))
      return fail(ErrorCode::unsupported, architecture_.name, "cross attention under vLLM is not in this version");
    CacheSpec out;
    out.token_bytes = token_bytes(cache, sparse);
    if (!cache.window || options_.version < kHybridPools) return out;
    out.use = cache.chunked ? CacheUse::chunked : CacheUse::sliding;
    out.width = *cache.window;
    return out;
  }

  // Convolutions keep the inputs of tokens that may be taken back, too.
  CacheSpec of_state(const model::Recurrent& state) const {
    const std::int64_t tp = options_.tensor_parallel_size;
    const std::int64_t kept = state.conv_kernel > 0 ? state.conv_kernel - 1 + options_.speculative_tokens : 0;
    const std::int64_t matrix_width = state.matrix_in_fp32 ? size_of(DType::f32) : size_of(options_.dtype);
    CacheSpec out;
    out.use = CacheUse::state;
    out.state_bytes = divide_up(state.conv_channels, tp) * kept * size_of(options_.dtype) +
                      divide_up(state.heads, tp) * state.rows * state.columns * matrix_width +
                      state.shifted * size_of(options_.dtype);
    return out;
  }

  const model::Architecture& architecture_;
  const Options& options_;
};

// Layers of each spec, in the order of the first of them.
std::vector<CacheGroup> by_spec(const std::vector<CacheSpec>& specs) {
  std::vector<CacheGroup> out;
  for (const CacheSpec& spec : specs) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const CacheGroup& g) { return g.spec == spec; });
    if (known != out.end()) ++known->layers;
    else out.push_back({spec, 1, 0});
  }
  return out;
}

bool is_state(const CacheGroup& group) { return group.spec.use == CacheUse::state; }

std::int64_t page_bytes(const CacheGroup& group) {
  return is_state(group) ? group.spec.state_bytes : group.spec.token_bytes * group.block_size;
}

// V0 and layers of one use: every layer's page stands in every block.
CachePlan plan_uniform(const std::vector<CacheGroup>& kinds, const Options& options) {
  CachePlan out;
  out.block_size = options.block_size;
  CacheGroup all = kinds.front();
  all.layers = 0;
  all.block_size = options.block_size;
  for (const CacheGroup& kind : kinds) {
    all.layers += kind.layers;
    out.block_bytes += kind.layers * kind.spec.token_bytes * options.block_size;
  }
  out.groups.push_back(all);
  return out;
}

// Attention's blocks grow until one holds the largest state.
std::int64_t attention_block_size(const std::vector<CacheGroup>& kinds, const Options& options) {
  std::int64_t state = 0;
  std::int64_t token = 0;
  for (const CacheGroup& kind : kinds) {
    if (is_state(kind)) state = std::max(state, kind.spec.state_bytes);
    else token = std::max(token, kind.spec.token_bytes);
  }
  if (state == 0 || token == 0) return options.block_size;
  return options.block_size * std::max<std::int64_t>(1, divide_up(state, options.block_size * token));
}

// Layers of several uses: as many layers in each group, which draw from one pool.
Expected<CachePlan> plan_hybrid(std::vector<CacheGroup> kinds, const Options& options) {
  CachePlan out;
  out.block_size = attention_block_size(kinds, options);
  std::int64_t page = 0;
  for (CacheGroup& kind : kinds) {
    kind.block_size = out.block_size;
    page = std::max(page, page_bytes(kind));
  }
  std::int64_t fewest = kinds.front().layers;
  std::int64_t most = fewest;
  for (CacheGroup& kind : kinds) {
    fewest = std::min(fewest, kind.layers);
    most = std::max(most, kind.layers);
    if (is_state(kind)) continue;  // padded to the others' page
    const std::int64_t own = page_bytes(kind);
    if (page % own != 0)
      return fail(ErrorCode::unsupported, "vllm", "it cannot share a pool among these layers: pages do not divide");
    kind.block_size *= page / own;
  }
  const std::int64_t group_layers = 2 * most < 3 * fewest ? most : fewest;
  for (const CacheGroup& kind : kinds) {
    for (std::int64_t left = kind.layers; left > 0; left -= group_layers) {
      CacheGroup group = kind;
      group.layers = std::min(left, group_layers);
      out.padding_layers += group_layers - group.layers;
      out.groups.push_back(group);
    }
  }
  out.block_bytes = page * group_layers;
  return out;
}

bool all_full(const std::vector<CacheGroup>& kinds) {
  return std::all_of(kinds.begin(), kinds.end(), [](const CacheGroup& g) { return g.spec.use == CacheUse::full; });
}

std::int64_t blocks_of(const CacheGroup& group, const Options& options, std::int64_t tokens) {
  const std::int64_t put_in = options.max_num_batched_tokens;
  switch (group.spec.use) {
    case CacheUse::full: return divide_up(tokens, group.block_size * options.decode_context_parallel_size);
    case CacheUse::sliding: return divide_up(std::min(group.spec.width - 1 + put_in, tokens), group.block_size) + 1;
    case CacheUse::chunked: return divide_up(std::min(group.spec.width + put_in, tokens), group.block_size);
    case CacheUse::state: return (options.state_caching == StateCaching::aligned ? 2 : 1) + options.speculative_tokens;
  }
  return 0;
}

}  // namespace

Expected<CachePlan> plan_cache(const model::Architecture& architecture, const Options& options, std::int64_t first,
                               std::int64_t last) {
  auto specs = SpecReader(architecture, options).read(first, last);
  if (!specs) return tl::unexpected<Error>(specs.error());
  std::int64_t per_token = 0;
  for (const CacheSpec& spec : *specs) per_token += spec.token_bytes;
  std::int64_t beside = 0;
  // V0 keeps states outside of its pool.
  if (!is_v1(options.version)) {
    for (const CacheSpec& spec : *specs) beside += spec.state_bytes;
    specs->erase(
        std::remove_if(specs->begin(), specs->end(), [](const CacheSpec& spec) { return spec.use == CacheUse::state; }),
        specs->end());
  }
  const std::vector<CacheGroup> kinds = by_spec(*specs);
  if (kinds.empty()) {
    CachePlan none;
    none.states_beside = beside;
    return none;
  }
  const bool uniform = kinds.size() == 1 || all_full(kinds);
  auto out = uniform && !is_state(kinds.front()) ? plan_uniform(kinds, options) : plan_hybrid(kinds, options);
  if (out) {
    out->bytes_per_token = per_token;
    out->states_beside = beside;
  }
  return out;
}

std::int64_t blocks_per_request(const CachePlan& plan, const Options& options, std::int64_t tokens) {
  std::int64_t out = 0;
  for (const CacheGroup& group : plan.groups) out += blocks_of(group, options, tokens);
  return out;
}

WorkloadFit fit_workload(const CachePlan& plan, const Options& options, std::int64_t blocks, const Workload& workload) {
  WorkloadFit out;
  out.blocks_per_request = blocks_per_request(plan, options, workload.kept_tokens());
  const std::int64_t by_blocks = out.blocks_per_request > 0 ? blocks / out.blocks_per_request : options.max_num_seqs;
  out.by_sequences = by_blocks > options.max_num_seqs;
  out.most_requests = std::min(by_blocks, options.max_num_seqs);
  return out;
}

Capacity capacity(const CachePlan& plan, const Options& options, std::int64_t pool_bytes) {
  if (plan.block_bytes == 0) return {};
  return capacity_of_blocks(plan, options, std::max<std::int64_t>(0, pool_bytes / plan.block_bytes));
}

Capacity capacity_of_blocks(const CachePlan& plan, const Options& options, std::int64_t blocks) {
  Capacity out;
  out.blocks = blocks;
  if (plan.groups.empty()) return out;
  const std::int64_t group_tokens =
      blocks / static_cast<std::int64_t>(plan.groups.size()) * plan.block_size * options.decode_context_parallel_size;
  if (!is_v1(options.version)) {
    out.max_concurrency = static_cast<double>(group_tokens) / static_cast<double>(options.max_model_len);
  } else {
    out.max_concurrency =
        static_cast<double>(blocks) / static_cast<double>(blocks_per_request(plan, options, options.max_model_len));
  }
  const auto held = static_cast<std::int64_t>(out.max_concurrency * static_cast<double>(options.max_model_len));
  out.tokens = plan.groups.size() == 1 ? group_tokens : held;
  out.tokens_printed = options.version >= kPrintsCapacity ? held : group_tokens;
  return out;
}

}  // namespace ullage::engines::vllm
