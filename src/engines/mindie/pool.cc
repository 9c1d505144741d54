#include "engines/mindie/pool.h"

#include <algorithm>

#include "base/bytes.h"
#include "engines/budget/rules.h"

namespace ullage::engines::mindie {

budget::Pool pool(const budget::Options& options, const budget::Holdings& held) {
  if (options.pool_bytes) return budget::in_blocks(*options.pool_bytes, held, options.block_size);
  const auto gib = [&](std::string_view item) {
    return static_cast<std::int64_t>(budget::rule(options, item, nullptr).value * static_cast<double>(kGiB));
  };
  // What the guide calls free: the card less what it holds while it is idle.
  const std::int64_t idle = std::max(gib("idle_gib"), held.used);
  const std::int64_t left = held.total - idle - held.weights - gib("sampling_gib");
  const auto whole = static_cast<std::int64_t>(static_cast<double>(left) * options.fraction) / kGiB;
  return budget::in_blocks(whole * kGiB, held, options.block_size);
}

std::int64_t request_blocks(const budget::Options& options, std::int64_t input_tokens, std::int64_t output_tokens) {
  const auto up = [&](std::int64_t tokens) { return (tokens + options.block_size - 1) / options.block_size; };
  return up(input_tokens) + up(output_tokens);
}

}  // namespace ullage::engines::mindie
