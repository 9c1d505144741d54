#include "engines/tensorrt_llm/pool.h"

#include <algorithm>

#include "base/bytes.h"

namespace ullage::engines::tensorrt_llm {

budget::Pool pool(const budget::Options& options, const budget::Holdings& held) {
  budget::Pool out;
  if (held.token <= 0) return out;
  if (options.contiguous) {
    out.tokens = options.max_batch * options.beams * options.longest;
    out.bytes = out.tokens * held.token;
    out.blocks = options.max_batch * options.beams;
    out.tokens_printed = out.tokens;
    return out;
  }
  const std::int64_t free = held.free_after_weights() - held.activations;
  out.bytes = static_cast<std::int64_t>(static_cast<double>(free) * options.fraction);
  if (out.bytes <= 0) return out;
  std::int64_t tokens = out.bytes / held.token;
  if (options.most_tokens) tokens = std::min(tokens, *options.most_tokens);
  out.blocks = (tokens + options.block_size - 1) / options.block_size;
  out.tokens = out.blocks * options.block_size;
  // Releases of 2023 print what they were given to round.
  constexpr budget::Version kPrintsBlocks{0, 8, 0};
  out.tokens_printed = options.version < kPrintsBlocks ? tokens : out.tokens;
  return out;
}

}  // namespace ullage::engines::tensorrt_llm
