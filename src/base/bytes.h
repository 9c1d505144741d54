// Sizes in bytes: arithmetic that does not overflow silently, reading and writing with units.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;
inline constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

enum class Unit { gib, gb, mib, bytes };

// Rounds up to a multiple of `granularity` (> 0).
constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t granularity) {
  const bool power_of_two = (granularity & (granularity - 1)) == 0;  // the usual case, without a division
  if (power_of_two) return (bytes + granularity - 1) & ~(granularity - 1);
  return (bytes + granularity - 1) / granularity * granularity;
}

// a*b, or kMaxBytes where the product does not fit (both must not be negative).
constexpr std::int64_t multiply_saturated(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMaxBytes : product;
}

// a+b, or kMaxBytes where the sum does not fit (both must not be negative).
constexpr std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMaxBytes : sum;
}

// "15.92 GiB", "17.09 GB", "16303.0 MiB", "17094934528 B". GiB and GB step down to MiB/KiB/B (MB/kB/B)
// for small values, so that "512 B" is not "0.00 GiB".
std::string format_bytes(std::int64_t bytes, Unit unit = Unit::gib);

// Reads "79.1GiB", "80GB", "81559 MiB", "1.5T", "512 B", "0"; units are case-insensitive, K/M/G/T alone
// are binary. Fails without a unit (but for 0), on negative, empty, non-finite and from 9.2e18 bytes on.
Expected<std::int64_t> parse_bytes(std::string_view text, std::string_view where);

Expected<Unit> parse_unit(std::string_view text, std::string_view where);

}  // namespace ullage
