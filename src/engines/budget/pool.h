// What one GPU holds before an engine makes its cache, and the cache that the engine then makes.
#pragma once

#include <cstdint>

namespace ullage::engines::budget {

// Bytes of one GPU.
struct Holdings {
  std::int64_t total = 0;        // of the card
  std::int64_t used = 0;         // by others
  std::int64_t context = 0;      // the driver's
  std::int64_t libraries = 0;    // kernels, NCCL
  std::int64_t weights = 0;      // with tables of positions
  std::int64_t activations = 0;  // of the largest step
  std::int64_t token = 0;        // keys and values of one token
  std::int64_t vocab = 0;        // elements of one row of logits

  std::int64_t free_after_weights() const { return total - used - context - libraries - weights; }
};

struct Pool {
  std::int64_t bytes = 0;     // that the engine gives to the cache; may be negative
  std::int64_t reserved = 0;  // set aside beside it for the largest step
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;          // that they hold
  std::int64_t tokens_printed = 0;  // as the log has them
};

// Whole blocks of the bytes.
inline Pool in_blocks(std::int64_t bytes, const Holdings& held, std::int64_t block_size) {
  Pool out;
  out.bytes = bytes;
  if (bytes > 0 && held.token > 0) out.blocks = bytes / (held.token * block_size);
  out.tokens = out.tokens_printed = out.blocks * block_size;
  return out;
}

}  // namespace ullage::engines::budget
