#include "memory/pinned.h"

#include <algorithm>
#include <array>

namespace ullage::memory {
namespace {

constexpr int kPowers = 63;

int power_of(std::int64_t bytes) {
  int power = 0;
  while (power + 1 < kPowers && std::int64_t{1} << power < bytes) ++power;
  return power;
}

}  // namespace

std::int64_t pinned_bytes(const Timeline& timeline) {
  std::array<std::int64_t, kPowers> used{};
  std::array<std::int64_t, kPowers> made{};
  for (const Event& event : timeline.events) {
    if (event.space != Space::host_pinned || event.kind > EventKind::free) continue;
    const auto power = static_cast<std::size_t>(power_of(timeline.blocks[event.block].requested_bytes));
    used[power] += event.kind == EventKind::alloc ? 1 : -1;
    made[power] = std::max(made[power], used[power]);
  }
  std::int64_t bytes = 0;
  for (int power = 0; power < kPowers; ++power)
    bytes = add_saturated(bytes, multiply_saturated(made[static_cast<std::size_t>(power)], std::int64_t{1} << power));
  return bytes;
}

}  // namespace ullage::memory
