#include "plan/fit.h"

#include <algorithm>
#include <array>
#include <optional>

namespace ullage::plan {
namespace {

// By bits a weight.
constexpr std::array<std::string_view, 3> kQuantizations{"", "int8", "nf4"};

class Chooser {
 public:
  Chooser(const FitRange& range, const FitHeadroom& headroom) : range_(range), headroom_(headroom) {}

  Expected<std::vector<FitChoice>> choose() {
    std::vector<FitChoice> out;
    const auto one = first_fit(1, 1);
    if (one) out.push_back(*one);
    if (!error_ && (!one || !one->setup.quantization.empty())) {
      const auto several = range_.most_cards > 1 ? first_fit(2, range_.most_cards) : std::nullopt;
      if (!one && several && several->setup.quantization.empty()) add_fewer(several->setup.cards, out);
      if (several) out.push_back(*several);
    }
    if (error_) return tl::unexpected<Error>(*error_);
    if (!ran_ && refused_) return tl::unexpected<Error>(*refused_);
    return out;
  }

 private:
  // Twice as many, but the most that there are before more than those.
  std::int64_t more_than(std::int64_t cards) const {
    return cards < range_.most_cards ? std::min(2 * cards, range_.most_cards) : 2 * cards;
  }

  // Fewer cards than the weights as they are need.
  void add_fewer(std::int64_t than, std::vector<FitChoice>& out) {
    for (std::int64_t cards = 2; cards < than && !error_; cards = more_than(cards)) {
      for (const std::string_view quantization : kQuantizations) {
        if (quantization.empty()) continue;
        const FitSetup setup{quantization, cards};
        const Largest context = largest(setup);
        if (context.size == 0) continue;
        out.push_back({setup, context});
        return;
      }
    }
  }

  // Fewer cards count less than more bits: all counts of cards are tried before the next quantisation.
  std::optional<FitChoice> first_fit(std::int64_t fewest, std::int64_t most) {
    for (const std::string_view quantization : kQuantizations) {
      for (std::int64_t cards = fewest; cards <= most && !error_; cards = more_than(cards)) {
        const FitSetup setup{quantization, cards};
        const Largest context = largest(setup);
        if (context.size > 0) return FitChoice{setup, context};
      }
    }
    return std::nullopt;
  }

  Largest largest(const FitSetup& setup) {
    const auto found = find_largest(range_.least_tokens, range_.most_tokens,
                                    [&](std::int64_t tokens) { return headroom_(setup, tokens); });
    if (found) {
      ran_ = true;
      return *found;
    }
    (found.error().code == ErrorCode::unsupported ? refused_ : error_) = found.error();
    return {};
  }

  const FitRange& range_;
  const FitHeadroom& headroom_;
  std::optional<Error> error_;
  std::optional<Error> refused_;
  bool ran_ = false;
};

}  // namespace

Expected<std::vector<FitChoice>> choose_fits(const FitRange& range, const FitHeadroom& headroom) {
  return Chooser(range, headroom).choose();
}

}  // namespace ullage::plan
