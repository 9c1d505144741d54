#include "cli/train_advice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "hardware/gpu_list.h"
#include "plan/alternatives.h"
#include "report/glance.h"

namespace ullage::cli {
namespace {

using plan::Change;
using plan::Cost;
using report::Text;

constexpr std::size_t kMostCards = 2;
constexpr double kPrinted = 100;  // a ratio of times is printed with two digits

struct Tried {
  std::vector<std::string> args;
  Cost cost = Cost::time;
  report::Message text;
  report::Prediction prediction;
  bool other_card = false;  // the times of two cards are not compared
};

Text text_of(Change change) {
  switch (change) {
    case Change::fused_attention: return Text::advice_fused_attention;
    case Change::expandable_segments: return Text::advice_expandable_segments;
    case Change::fused_optimizer: return Text::advice_fused_optimizer;
    case Change::optimizer_in_backward: return Text::advice_optimizer_in_backward;
    case Change::fused_loss: return Text::advice_fused_loss;
    case Change::recompute: return Text::advice_recompute;
    case Change::half_micro_batch:
    case Change::micro_batch_of_one: return Text::advice_smaller_micro_batch;
    case Change::paged_8bit_optimizer: return Text::advice_paged_8bit;
    case Change::weights_in_bf16: return Text::advice_bf16;
    case Change::lora: return Text::advice_lora;
    case Change::qlora: return Text::advice_qlora;
  }
  return Text::advice_recompute;
}

using report::whole_of;

bool fits(const report::Prediction& p) { return p.fit.fits.value_or(false); }

std::optional<double> ratio_of(const report::Prediction& p, const report::Prediction& base) {
  if (!p.roofline_seconds || !base.roofline_seconds || *base.roofline_seconds <= 0) return std::nullopt;
  return *p.roofline_seconds / *base.roofline_seconds;
}

class Adviser {
 public:
  Adviser(const AdviceQuestion& question, const PredictStep& predict) : question_(question), predict_(predict) {}

  std::vector<report::AdviceLine> take() {
    try_alone();
    if (question_.base.fit.fits == false) {
      if (std::none_of(tried_.begin(), tried_.end(), [](const Tried& t) { return fits(t.prediction); })) try_together();
      try_cards();
    }
    cheapest_first();
    std::vector<report::AdviceLine> out;
    for (const Tried& one : tried_) {
      out.push_back({one.args, whole_of(question_.base) - whole_of(one.prediction), whole_of(one.prediction),
                     one.prediction.fit.fits, one.other_card ? std::nullopt : ratio_of(one.prediction, question_.base),
                     one.text});
    }
    return out;
  }

 private:
  // By the time of a step as it is printed, then by how much is given up, then as they were tried; what has no time to
  // compare, another card, last.
  void cheapest_first() {
    const auto cost = [&](const Tried& one) {
      const auto ratio = one.other_card ? std::nullopt : ratio_of(one.prediction, question_.base);
      return std::pair(ratio ? std::llround(*ratio * kPrinted) : std::numeric_limits<long long>::max(), one.cost);
    };
    std::stable_sort(tried_.begin(), tried_.end(), [&](const Tried& a, const Tried& b) { return cost(a) < cost(b); });
  }

  // Nothing where it cannot be run with the rest of the set-up.
  std::optional<report::Prediction> run(const std::vector<std::string>& args) const {
    std::vector<std::string> words{"model"};
    words.insert(words.end(), args.begin(), args.end());
    const auto parsed = parse_arguments(*find_command("train"), words);
    if (!parsed) return std::nullopt;
    Arguments changed = question_.arguments;
    changed.replace_with(*parsed);
    auto prediction = predict_(changed);
    if (!prediction) return std::nullopt;
    return *std::move(prediction);
  }

  void try_alone() {
    for (plan::Alternative& alternative : plan::alternatives(question_.architecture, question_.options)) {
      auto prediction = run(alternative.args);
      if (!prediction || whole_of(*prediction) >= whole_of(question_.base)) continue;
      tried_.push_back(
          {std::move(alternative.args), alternative.cost, {text_of(alternative.change), {}}, *std::move(prediction)});
    }
    std::stable_sort(tried_.begin(), tried_.end(), [&](const Tried& a, const Tried& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      return ratio_of(a.prediction, question_.base).value_or(1) < ratio_of(b.prediction, question_.base).value_or(1);
    });
  }

  // One more at a time, mildest first, until they are enough; then without those that are not needed after all.
  void try_together() {
    std::vector<const Tried*> taken;
    std::optional<report::Prediction> enough;
    for (const Tried& one : tried_) {
      taken.push_back(&one);
      auto prediction = run(args_of(taken));
      if (!prediction) taken.pop_back();
      if (!prediction || !fits(*prediction)) continue;
      enough = std::move(prediction);
      break;
    }
    if (!enough) return;
    for (std::size_t i = 0; i < taken.size() && taken.size() > 1;) {
      std::vector<const Tried*> fewer = taken;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      auto prediction = run(args_of(fewer));
      if (!prediction || !fits(*prediction)) {
        ++i;
        continue;
      }
      enough = std::move(prediction);
      taken = std::move(fewer);
    }
    tried_.push_back({args_of(taken), taken.back()->cost, {Text::advice_together, {}}, *std::move(enough)});
  }

  static std::vector<std::string> args_of(const std::vector<const Tried*>& taken) {
    std::vector<std::string> out;
    for (const Tried* one : taken) out = with(std::move(out), one->args);
    return out;
  }

  // Options of `more` in place of those of the same name.
  static std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
    for (std::size_t i = 0; i < more.size();) {
      const std::size_t next = i + 1 < more.size() && !more[i + 1].starts_with("--") ? i + 2 : i + 1;
      const auto old = std::find(args.begin(), args.end(), more[i]);
      if (old != args.end()) args.erase(old, old + static_cast<std::ptrdiff_t>(next - i));
      args.insert(args.end(), more.begin() + static_cast<std::ptrdiff_t>(i),
                  more.begin() + static_cast<std::ptrdiff_t>(next));
      i = next;
    }
    return args;
  }

  // The smallest cards of the maker that have room, of different sizes.
  void try_cards() {
    if (!question_.arguments.has("--gpu") || question_.arguments.has("--gpu-memory")) return;
    std::vector<hardware::Gpu> cards = larger_cards();
    std::size_t found = 0;
    std::int64_t last = 0;
    for (const hardware::Gpu& card : cards) {
      if (found == kMostCards) return;
      if (card.usable_bytes <= last) continue;
      auto prediction = run({"--gpu", card.id});
      if (!prediction || !fits(*prediction)) continue;
      last = card.usable_bytes + card.usable_bytes / 8;
      ++found;
      tried_.push_back({{"--gpu", card.id},
                        Cost::training,
                        {Text::advice_card, {{"gpu", card.name}}},
                        *std::move(prediction),
                        true});
    }
  }

  // Of the same maker, with room for what the base needs, smallest first.
  std::vector<hardware::Gpu> larger_cards() const {
    const auto own = hardware::find_gpu(question_.base.device.name);
    if (!own) return {};
    hardware::GpuFilter filter;
    filter.vendor = own->vendor;
    auto cards = hardware::list_gpus(filter);
    if (!cards) return {};
    std::erase_if(*cards, [&](const hardware::Gpu& card) { return card.usable_bytes < whole_of(question_.base); });
    std::stable_sort(cards->begin(), cards->end(), [](const hardware::Gpu& a, const hardware::Gpu& b) {
      return a.usable_bytes != b.usable_bytes ? a.usable_bytes < b.usable_bytes
                                              : a.year.value_or(0) > b.year.value_or(0);
    });
    return *std::move(cards);
  }

  const AdviceQuestion& question_;
  const PredictStep& predict_;
  std::vector<Tried> tried_;
};

}  // namespace

std::vector<report::AdviceLine> advise(const AdviceQuestion& question, const PredictStep& predict) {
  return Adviser(question, predict).take();
}

}  // namespace ullage::cli
