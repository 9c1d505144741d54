#include "engines/tgi/pool.h"

#include <algorithm>

#include "engines/budget/rules.h"

namespace ullage::engines::tgi {

budget::Pool pool(const budget::Options& options, const budget::Holdings& held) {
  const double room = budget::rule(options, "wiggle_room", nullptr).value;
  const std::int64_t filled = (options.prefill_tokens + options.block_size - 1) / options.block_size;
  const std::int64_t block = held.token * options.block_size;
  // The prefill's memory stays with PyTorch while the driver is asked.
  const std::int64_t free = held.free_after_weights() - held.activations - filled * block;
  const auto part_of_card = [&](double part) {
    return static_cast<std::int64_t>(static_cast<double>(held.total) * part);
  };
  std::int64_t left = 0;
  if (options.version < kRoomOfTheCard) {
    left = std::max<std::int64_t>(0, free - part_of_card(1 - options.fraction));
    left = static_cast<std::int64_t>(static_cast<double>(left) * room);
  } else {
    left = std::max<std::int64_t>(0, free - part_of_card(1 - options.fraction * room));
  }
  budget::Pool out;
  out.bytes = free < 0 ? free : left + filled * block;
  if (block <= 0 || free < 0) return out;
  out.blocks = left / block + filled;
  if (options.most_tokens) out.blocks = std::min(out.blocks, *options.most_tokens / options.block_size);
  out.tokens = out.tokens_printed = out.blocks * options.block_size;
  return out;
}

}  // namespace ullage::engines::tgi
