#include "memory/footprint.h"

#include <array>

namespace ullage::memory {

bool adds_up(const Footprint& footprint) {
  std::array<std::int64_t, 3> sums{};
  for (const Line& line : footprint.lines) sums[static_cast<std::size_t>(line.level)] += line.bytes;
  std::int64_t total = sums[0];
  if (total != footprint.allocated_bytes) return false;
  total += sums[1];
  if (footprint.reserved_bytes && total != *footprint.reserved_bytes) return false;
  total += sums[2];
  return !footprint.process_bytes || total == *footprint.process_bytes;
}

}  // namespace ullage::memory
