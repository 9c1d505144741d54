#include "engines/lmdeploy/pool.h"

namespace ullage::engines::lmdeploy {
namespace {

constexpr std::int64_t kLeastBlocks = 16;
constexpr std::int64_t kLogitBytes = 2;

std::int64_t share(std::int64_t bytes, double fraction) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * fraction);
}

}  // namespace

budget::Pool pool(const budget::Options& options, const budget::Holdings& held) {
  if (options.blocks)
    return budget::in_blocks(*options.blocks * options.block_size * held.token, held, options.block_size);
  const std::int64_t free = held.free_after_weights();
  if (!options.pytorch) {
    const bool of_all = options.version < kOfWhatIsFree;
    return budget::in_blocks(share(of_all ? held.total : free, options.fraction), held, options.block_size);
  }
  budget::Pool out;
  for (std::int64_t tokens = options.prefill_tokens; tokens > 0; tokens /= 2) {
    const std::int64_t buffers = (tokens + 2 * options.max_batch) * held.vocab * kLogitBytes;
    out = budget::in_blocks(share(free - buffers, options.fraction), held, options.block_size);
    out.reserved = buffers;
    if (out.blocks >= kLeastBlocks) break;
  }
  return out;
}

}  // namespace ullage::engines::lmdeploy
