// The largest size that fits, found by trying.
#pragma once

#include <cstdint>
#include <functional>

#include "base/expected.h"

namespace ullage::plan {

// Bytes that are left with this size; negative where it does not fit.
using Headroom = std::function<Expected<std::int64_t>(std::int64_t size)>;

struct Largest {
  std::int64_t size = 0;      // fits, and the next does not; 0: not even the first fits
  bool at_the_limit = false;  // the last one that was allowed
  std::int64_t tried = 0;     // how many sizes were run
};

// Searches from `from` (at least 1) to `to`. What it finds fits and the next size does not, even where memory does not
// rise with every step (an allocator's rounding); then there may be larger ones that fit, too. Memory is taken to be
// nearly a straight line, so that a handful of tries is enough. A size beyond the first that cannot be run at all, such
// as one with more elements than can be counted, does not fit; that the first cannot be run is an error.
Expected<Largest> find_largest(std::int64_t from, std::int64_t to, const Headroom& headroom);

// The same where something tells already about where the size is: tries there first and goes outwards from it in steps
// that double. Nothing is tried below `from`; size 0: not even that fits, or could be run.
Largest find_largest_near(std::int64_t guess, std::int64_t from, std::int64_t to, const Headroom& headroom);

}  // namespace ullage::plan
