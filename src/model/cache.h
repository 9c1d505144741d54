// What the layers of a network keep from one token to the next while text is generated: facts of the architecture, and
// the bytes they come to. How an engine lays them out (pages, padding, heads copied for tensor parallelism, latent
// vectors spread out to heads) is that engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "model/architecture.h"

namespace ullage::model {

// What layers of a kind keep, in the order that they use it. A layer that reads another's (Architecture::cache_of)
// keeps none of it.
std::vector<TokenCache> token_caches(const LayerKind& kind);

// The layer whose keys and values `layer` reads: itself, but where layers share.
std::int64_t cache_owner(const Architecture& architecture, std::int64_t layer);

// The type of what is kept, by the name engines give it. Quantised types come in blocks along a head's row.
struct CacheType {
  std::string_view name;
  std::int64_t block = 1;        // elements
  std::int64_t block_bytes = 0;  // with their scales
};

// fp32, fp16, bf16, fp8, int8, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl; also f32, f16, float16, half, bfloat16, float32,
// fp8_e4m3, fp8_e5m2. nullopt: none of these. Scales of fp8 and int8 are not by token and not counted.
std::optional<CacheType> parse_cache_type(std::string_view name);
CacheType cache_type(DType dtype);  // of a floating type

struct CacheTypes {
  CacheType keys;
  CacheType values;
  DType state = DType::bf16;  // convolutions, shifts, and matrices whose published code does not say fp32
};

CacheTypes cache_types(DType dtype);

// Bytes of one token's entry; whole blocks in each row of heads.
std::int64_t entry_bytes(const TokenCache& cache, const CacheTypes& types);

// Entries for a sequence of `tokens`, of which a window or chunk keeps no more than its width.
std::int64_t entries(const TokenCache& cache, std::int64_t tokens);

// Of one sequence, whatever its length.
std::int64_t state_bytes(const Recurrent& state, const CacheTypes& types);

// Layers that keep the same, in the order of the first of them.
struct CacheLine {
  std::optional<TokenCache> tokens;  // this, or
  std::optional<Recurrent> state;    // this
  std::int64_t layers = 0;
};

std::vector<CacheLine> cache_lines(const Architecture& architecture);

// Of one sequence. Cross attention counts `encoder_tokens`.
struct CacheBytes {
  std::int64_t per_token = 0;        // while no window is full
  std::int64_t per_later_token = 0;  // when all are
  std::int64_t by_token = 0;         // keys and values of `tokens`
  std::int64_t state = 0;            // recurrent
};

CacheBytes cache_bytes(const Architecture& architecture, const CacheTypes& types, std::int64_t tokens,
                       std::int64_t encoder_tokens);

}  // namespace ullage::model
