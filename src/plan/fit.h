// What makes a model fit on cards of a kind: fewer bits, or more cards.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "plan/largest.h"

namespace ullage::plan {

struct FitSetup {
  std::string_view quantization;  // of weights, as --quantization names it; empty: the checkpoint's own type
  std::int64_t cards = 1;
};

// Bytes that are left on the fullest card when `tokens` of one sequence are kept; negative where they do not fit.
using FitHeadroom = std::function<Expected<std::int64_t>(const FitSetup& setup, std::int64_t tokens)>;

struct FitChoice {
  FitSetup setup;
  Largest context;  // tokens of one sequence
};

inline constexpr std::int64_t kMostCards = 8;

struct FitRange {
  std::int64_t least_tokens = 1;         // a set-up that cannot keep so many does not count as fitting
  std::int64_t most_tokens = 1;          // as far as the model's positions go
  std::int64_t most_cards = kMostCards;  // 1, 2, 4, … and this many are tried
};

// The first set-up on one card that fits, weights of more bits first; and, where that quantises or there is none, the
// fewest cards that take the weights as they are, or quantised where even most_cards do not; in front of the former,
// where not even one card's quantised weights fit, the fewest cards that take them quantised. Empty: nothing fits.
// A set-up that cannot be run (ErrorCode::unsupported) is passed over; if none can be, that is the error.
Expected<std::vector<FitChoice>> choose_fits(const FitRange& range, const FitHeadroom& headroom);

}  // namespace ullage::plan
