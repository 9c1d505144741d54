#include "model/cache.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kBlock = 32;

// Blocks of ggml's types (ggml-common.h): a scale of two bytes, for _1 a minimum of two more, the high bits of q5.
constexpr std::array kTypes{
    CacheType{"fp32", 1, 4},
    CacheType{"fp16", 1, 2},
    CacheType{"bf16", 1, 2},
    CacheType{"fp8", 1, 1},
    CacheType{"int8", 1, 1},
    CacheType{"q8_0", kBlock, 2 + kBlock},
    CacheType{"q5_1", kBlock, 2 + 2 + kBlock / 8 + kBlock / 2},
    CacheType{"q5_0", kBlock, 2 + kBlock / 8 + kBlock / 2},
    CacheType{"q4_1", kBlock, 2 + 2 + kBlock / 2},
    CacheType{"q4_0", kBlock, 2 + kBlock / 2},
    CacheType{"iq4_nl", kBlock, 2 + kBlock / 2},
};

struct OtherName {
  std::string_view name;
  std::string_view type;
};

constexpr std::array kOtherNames{
    OtherName{"f32", "fp32"},     OtherName{"float32", "fp32"}, OtherName{"f16", "fp16"},
    OtherName{"float16", "fp16"}, OtherName{"half", "fp16"},    OtherName{"bfloat16", "bf16"},
    OtherName{"fp8_e4m3", "fp8"}, OtherName{"fp8_e5m2", "fp8"},
};

// Of one row of heads, in whole blocks.
std::int64_t row_bytes(std::int64_t elements, const CacheType& type) {
  return multiply_saturated(round_up(elements, type.block) / type.block, type.block_bytes);
}

TokenCache of_attention(const Attention& a) {
  TokenCache out;
  out.window = a.chunk ? a.chunk : a.window;
  out.chunked = a.chunk.has_value();
  out.tokens_per_entry = a.tokens_per_entry;
  if (a.latent.kv_rank > 0) {
    out.kind = TokenCacheKind::latent;
    out.heads = 1;
    out.key_dim = a.latent.kv_rank + a.latent.rope_dim;
    out.rope_dim = a.latent.rope_dim;
    return out;
  }
  out.heads = a.kv_heads;
  out.key_dim = a.head_dim;
  out.value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
  return out;
}

bool keeps_tokens(const Attention& a) {
  return a.kind != AttentionKind::none && a.causal && (a.kv_heads > 0 || a.latent.kv_rank > 0);
}

}  // namespace

std::vector<TokenCache> token_caches(const LayerKind& kind) {
  std::vector<TokenCache> out;
  if (keeps_tokens(kind.attention)) {
    out.push_back(of_attention(kind.attention));
    if (const std::int64_t dim = kind.attention.indexer_dim; dim > 0)
      out.push_back({TokenCacheKind::indexer, 1, dim, 0, 0, std::nullopt, false, kind.attention.tokens_per_entry});
  }
  if (kind.cross_attention.heads > 0) {
    TokenCache cross = of_attention(kind.cross_attention);
    cross.kind = TokenCacheKind::cross;
    out.push_back(cross);
  }
  out.insert(out.end(), kind.also_keeps.begin(), kind.also_keeps.end());
  return out;
}

std::int64_t cache_owner(const Architecture& architecture, std::int64_t layer) {
  return architecture.cache_of.empty() ? layer : architecture.cache_of[static_cast<std::size_t>(layer)];
}

std::optional<CacheType> parse_cache_type(std::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (other.name == name) name = other.type;
  }
  const auto* at = std::find_if(kTypes.begin(), kTypes.end(), [&](const CacheType& type) { return type.name == name; });
  if (at == kTypes.end()) return std::nullopt;
  return *at;
}

CacheType cache_type(DType dtype) { return {name_of(dtype), 1, size_of(dtype)}; }

CacheTypes cache_types(DType dtype) { return {cache_type(dtype), cache_type(dtype), dtype}; }

std::int64_t entry_bytes(const TokenCache& cache, const CacheTypes& types) {
  const std::int64_t keys = row_bytes(multiply_saturated(cache.heads, cache.key_dim), types.keys);
  const std::int64_t values = row_bytes(multiply_saturated(cache.heads, cache.value_dim), types.values);
  return add_saturated(keys, values);
}

std::int64_t entries(const TokenCache& cache, std::int64_t tokens) {
  return (cache.window ? std::min(tokens, *cache.window) : tokens) / cache.tokens_per_entry;
}

std::int64_t state_bytes(const Recurrent& state, const CacheTypes& types) {
  const std::int64_t width = size_of(types.state);
  const std::int64_t matrices =
      multiply_saturated(state.matrix_elements(), state.matrix_in_fp32 ? size_of(DType::f32) : width);
  return add_saturated(matrices, multiply_saturated(state.conv_elements() + state.shifted, width));
}

std::vector<CacheLine> cache_lines(const Architecture& architecture) {
  std::vector<CacheLine> out;
  const auto count = [&](CacheLine line) {
    for (CacheLine& known : out) {
      if (known.tokens == line.tokens && known.state == line.state) {
        ++known.layers;
        return;
      }
    }
    line.layers = 1;
    out.push_back(line);
  };
  std::vector<std::vector<TokenCache>> by_kind;
  for (const LayerKind& kind : architecture.kinds) by_kind.push_back(token_caches(kind));
  for (std::int64_t layer = architecture.encoder_layers; layer < architecture.layer_count(); ++layer) {
    const std::size_t kind = architecture.layers[static_cast<std::size_t>(layer)];
    if (cache_owner(architecture, layer) == layer) {
      for (const TokenCache& cache : by_kind[kind]) count({cache, std::nullopt, 0});
    }
    if (const auto& state = architecture.kinds[kind].recurrent) count({std::nullopt, state, 0});
  }
  return out;
}

CacheBytes cache_bytes(const Architecture& architecture, const CacheTypes& types, std::int64_t tokens,
                       std::int64_t encoder_tokens) {
  CacheBytes out;
  for (const CacheLine& line : cache_lines(architecture)) {
    if (line.state) {
      out.state = add_saturated(out.state, multiply_saturated(line.layers, state_bytes(*line.state, types)));
      continue;
    }
    const TokenCache& cache = *line.tokens;
    const std::int64_t bytes = multiply_saturated(line.layers, entry_bytes(cache, types));
    const bool cross = cache.kind == TokenCacheKind::cross;
    out.by_token =
        add_saturated(out.by_token, multiply_saturated(bytes, entries(cache, cross ? encoder_tokens : tokens)));
    if (cross) continue;
    out.per_token = add_saturated(out.per_token, bytes / cache.tokens_per_entry);
    if (!cache.window) out.per_later_token = add_saturated(out.per_later_token, bytes / cache.tokens_per_entry);
  }
  return out;
}

}  // namespace ullage::model
