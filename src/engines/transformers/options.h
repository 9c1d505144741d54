// What the user sets for generation with the transformers library. Names follow the command line.
#pragma once

#include <cstdint>

#include "engines/pytorch/options.h"

namespace ullage::engines::transformers {

// dynamic: grows by concatenation with every token; fixed: StaticCache, allocated in whole by the first tokens;
// quantised: QuantizedCache, without windows; offloaded: dynamic, each layer's waiting in host memory for its turn.
enum class CacheKind : std::uint8_t { dynamic, fixed, quantised, offloaded };

enum class CacheBackend : std::uint8_t { quanto, hqq };

// QuantizedCache's arguments and their defaults (cache_config).
struct QuantisedCache {
  CacheBackend backend = CacheBackend::quanto;
  std::int64_t bits = 4;
  int axis_key = 0;
  int axis_value = 0;
  std::int64_t group = 64;             // numbers that share a scale
  std::int64_t residual_length = 128;  // so many of the last tokens are fewer than are kept as they are
  // From one time that all tokens are quantised to the next: where there is one that is kept, it is looked at.
  std::int64_t period() const { return residual_length > 2 ? residual_length : 2; }
};

struct ServeOptions {
  pytorch::Kernels kernels = pytorch::Kernels::cuda;
  tensor::Capability card;  // of the GPU, for kernels that depend on it
  std::int64_t batch = 1;
  std::int64_t seq_len = 2048;   // tokens of each prompt
  std::int64_t new_tokens = 64;  // generated for each
  DType dtype = DType::bf16;
  pytorch::AttentionImpl attention = pytorch::AttentionImpl::sdpa;
  CacheKind cache = CacheKind::dynamic;
  QuantisedCache quantised_cache;                        // where that is what `cache` says
  model::BaseFormat weights = model::BaseFormat::plain;  // of linear layers but the head

  // The last token that is generated is never put in.
  std::int64_t cached_tokens() const { return seq_len + new_tokens - 1; }
};

// The modules' own options: a forward pass without gradients.
pytorch::TrainOptions module_options(const ServeOptions& options);

}  // namespace ullage::engines::transformers
