#include "plan/largest.h"

#include <algorithm>
#include <limits>

namespace ullage::plan {
namespace {

struct Try {
  std::int64_t size = 0;
  std::int64_t left = 0;
};

// What a size that cannot be run has left: so little that no line is drawn through it.
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();

class Search {
 public:
  explicit Search(const Headroom& headroom) : headroom_(headroom) {}

  Try run(std::int64_t size) {
    ++tried;
    const auto left = headroom_(size);
    return {size, left ? *left : kNothing};
  }

  // Where the line through two tries meets zero, kept strictly between `low` and `high`; their middle where it tells
  // nothing.
  static std::int64_t between(const Try& a, const Try& b, std::int64_t low, std::int64_t high) {
    std::int64_t guess = low + (high - low) / 2;
    if (a.left != kNothing && b.left != kNothing && a.left > b.left) {
      const double slope = static_cast<double>(b.left - a.left) / static_cast<double>(b.size - a.size);
      const double zero = static_cast<double>(a.size) - static_cast<double>(a.left) / slope;
      guess = static_cast<std::int64_t>(std::clamp(zero, static_cast<double>(low), static_cast<double>(high)));
    }
    return std::clamp(guess, low + 1, high - 1);
  }

  std::int64_t tried = 0;

 private:
  const Headroom& headroom_;
};

// Until the next size after the one that fits does not.
void close_in(Search& search, Try& fits, Try& fails) {
  bool halve = false;
  while (fails.size - fits.size > 1) {
    const std::int64_t width = fails.size - fits.size;
    const std::int64_t size = halve ? fits.size + width / 2 : Search::between(fits, fails, fits.size, fails.size);
    const Try tried = search.run(size);
    (tried.left >= 0 ? fits : fails) = tried;
    // A line that cuts off little lies badly; the next cut is through the middle.
    halve = fails.size - fits.size > width / 2;
  }
}

}  // namespace

Expected<Largest> find_largest(std::int64_t from, std::int64_t to, const Headroom& headroom) {
  const auto first = headroom(from);
  Search search(headroom);
  search.tried = 1;
  Try fits{from, first.value_or(kNothing)};
  // Some models cannot be run below a size of their own, as that of an image's tokens.
  while (!first && fits.left == kNothing && fits.size <= to / 2) fits = search.run(2 * fits.size);
  if (!first && fits.left == kNothing) return tl::unexpected<Error>(first.error());
  if (fits.left < 0) return Largest{0, false, search.tried};
  Try fails{to + 1, kNothing};
  // Outwards, twice as far each time, until one does not fit.
  for (std::int64_t size = fits.size; fits.size < to && fails.size > to;) {
    size = std::min(to, size > to / 2 ? to : 2 * size);
    const Try tried = search.run(size);
    (tried.left >= 0 ? fits : fails) = tried;
  }
  close_in(search, fits, fails);
  return Largest{fits.size, fits.size == to, search.tried};
}

Largest find_largest_near(std::int64_t guess, std::int64_t from, std::int64_t to, const Headroom& headroom) {
  Search search(headroom);
  Try at = search.run(std::clamp(guess, from, to));
  const bool up = at.left >= 0;
  Try fits = at;
  Try fails = at;
  // A step is a small part of the way, so that a good guess is soon enclosed.
  constexpr std::int64_t kParts = 64;
  for (std::int64_t step = std::max<std::int64_t>(1, at.size / kParts);; step *= 2) {
    if (up ? at.size >= to : at.size <= from) break;
    at = search.run(up ? std::min(to, at.size + step) : std::max(from, at.size - step));
    (at.left >= 0 ? fits : fails) = at;
    if ((at.left >= 0) != up) break;
  }
  if (fits.left < 0) return Largest{0, false, search.tried};
  if (fails.left >= 0) return Largest{fits.size, true, search.tried};
  close_in(search, fits, fails);
  return Largest{fits.size, fits.size == to, search.tried};
}

}  // namespace ullage::plan
