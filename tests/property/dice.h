// Random numbers, the same for a seed on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace ullage::testing {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators): no library's distributions, which
// differ between standard libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T>
  T any_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::uint64_t next();

  std::uint64_t state_;
};

}  // namespace ullage::testing
