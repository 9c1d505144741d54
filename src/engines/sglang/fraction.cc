// mem_fraction_static where it was not given: the card's memory less what SGLang means to leave to activations and
// graphs. Source: sglang/srt/server_args.py of each release.
#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "engines/sglang/graphs.h"
#include "engines/sglang/options.h"

namespace ullage::engines::sglang {
namespace {

constexpr double kUnknownCard = 0.88;
constexpr std::int64_t kLeastPrefillTokens = 2048;
constexpr std::int64_t kManyGraphBatches = 300;

// As Python's round(x, 3) does where no decimal is a tie.
double thousandths(double value) { return std::round(value * 1000) / 1000; }

// Of cards that were large when these releases were made.
double blended_0_4_7(double share, double card_mib, bool drafts) {
  constexpr double kLargest = 180'000;
  constexpr double kLarge = 96 * 1024;
  if (card_mib > kLargest) return 0.79;
  if (card_mib <= kLarge) return drafts ? share * 0.95 : share;
  const double reserve = (drafts ? 20 : 18) * 1024;
  return std::min(share + 48 * 1024 * (1 - share) / card_mib, (card_mib - reserve) / card_mib);
}

double by_ranks(const Options& o, const Surroundings& around, double card_mib) {
  Surroundings ranks = around;
  if (o.version >= kBlendsLargeCards) ranks.tensor_parallel_size = o.tp * o.pp;
  constexpr double kEighty = 80 * 1024;
  const double share = figure("fraction_by_ranks", ranks);
  if (o.version >= kBlendsLargeCards)
    return blended_0_4_7(card_mib <= kEighty ? share : kUnknownCard, card_mib, o.drafting != Drafting::none);
  if (o.version >= kKnowsLargeCards && card_mib > kEighty) return (card_mib - 13 * 1024) / card_mib;
  return share;
}

double piecewise_mib(const Options& o, const Surroundings& around, bool latent) {
  if (!o.piecewise_graphs) return 0;
  if (latent) return figure("reserve_piecewise_latent_mib", around);
  return figure("reserve_mib_per_piecewise_size", around) * static_cast<double>(piecewise_sizes(o, latent));
}

}  // namespace

double automatic_fraction(const Options& o, const hardware::Gpu* card, bool latent) {
  const Surroundings around = surroundings(o, card);
  if (card == nullptr) return o.version >= kReserves ? kUnknownCard : figure("fraction_by_ranks", around);
  const double card_mib = static_cast<double>(card->memory_bytes) / static_cast<double>(kMiB);
  if (o.version < kReserves) return by_ranks(o, around, card_mib);
  const auto tokens = static_cast<double>(std::max(o.prefill_tokens(), kLeastPrefillTokens));
  const auto batch = static_cast<double>(o.cuda_graph_max_bs);
  double reserve = figure("reserve_base_mib", around) + figure("reserve_mib_per_prefill_token", around) * tokens +
                   figure("reserve_mib_per_graph_batch", around) * batch +
                   figure("reserve_mib_per_rank", around) * static_cast<double>(o.tp * o.pp);
  if (o.enable_dp_attention) {
    const double by_batch = figure("reserve_dp_mib_per_graph_batch", around) * batch * static_cast<double>(o.dp);
    reserve += figure("reserve_dp_mib", around) + (o.cuda_graph_max_bs > kManyGraphBatches ? 1.5 : 1) * by_batch;
  }
  reserve += piecewise_mib(o, around, latent);
  reserve = std::max(reserve, figure("reserve_floor_mib", around));
  // Before 0.5.3 drafting by the prompt was not told from the others.
  const bool drafts =
      o.drafting == Drafting::own_layers || (o.drafting == Drafting::prompt && o.version < kReservesByUse);
  if (drafts) reserve += figure("reserve_draft_mib", around);
  return thousandths((card_mib - reserve) / card_mib);
}

double multimodal_factor(const Options& o, const Json& config) {
  const auto tower = config.is_object() ? config.find("vision_config") : config.end();
  if (tower == config.end() || !tower->is_object()) return 1;
  const double factor = figure("multimodal_factor", surroundings(o, nullptr));
  if (o.version < kMeasuresTowers) return factor;
  const auto number = [&](const char* key, double otherwise) {
    const auto found = tower->find(key);
    return found != tower->end() && found->is_number() ? found->get<double>() : otherwise;
  };
  // A tower of 24 layers 1,024 wide counts as one; each further one takes a tenth.
  const double width = number("hidden_size", 1024);
  const double towers = number("num_hidden_layers", 24) * width * width / (24.0 * 1024 * 1024);
  return factor * std::clamp(1 - 0.1 * (towers - 1), 0.8, 1.05);
}

}  // namespace ullage::engines::sglang
