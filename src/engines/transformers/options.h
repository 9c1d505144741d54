// What the user sets for generation with the transformers library. Names follow the command line.
#pragma once

#include <cstdint>

#include "engines/pytorch/options.h"

namespace ullage::engines::transformers {

// dynamic: grows by concatenation with every token; fixed: StaticCache, allocated in whole by the first tokens.
enum class CacheKind : std::uint8_t { dynamic, fixed };

struct ServeOptions {
  pytorch::Kernels kernels = pytorch::Kernels::cuda;
  tensor::Capability card;  // of the GPU, for kernels that depend on it
  std::int64_t batch = 1;
  std::int64_t seq_len = 2048;   // tokens of each prompt
  std::int64_t new_tokens = 64;  // generated for each
  DType dtype = DType::bf16;
  pytorch::AttentionImpl attention = pytorch::AttentionImpl::sdpa;
  CacheKind cache = CacheKind::dynamic;
  model::BaseFormat weights = model::BaseFormat::plain;  // of linear layers but the head

  // The last token that is generated is never put in.
  std::int64_t cached_tokens() const { return seq_len + new_tokens - 1; }
};

// The modules' own options: a forward pass without gradients.
pytorch::TrainOptions module_options(const ServeOptions& options);

}  // namespace ullage::engines::transformers
