#include "engines/sglang/budget.h"

#include <algorithm>
#include <cmath>

#include "engines/serving/arithmetic.h"
#include "engines/serving/widths.h"
#include "engines/sglang/graphs.h"

namespace ullage::engines::sglang {
namespace {

using serving::divide_up;
using serving::gib;
using serving::mib;

std::int64_t part(std::int64_t bytes, double share) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * share);
}

class Starter {
 public:
  Starter(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
          std::int64_t used_bytes)
      : architecture_(architecture), options_(options), card_(card), used_bytes_(used_bytes) {}

  Expected<Budget> run(const model::Quantisation* quantisation) {
    out_.total_bytes = card_ != nullptr ? card_->usable_bytes : 0;
    expert_workspaces_ = !serving::has_mxfp4_experts(architecture_, quantisation);
    auto fixed = fixed_parts(quantisation);
    if (!fixed) return tl::unexpected<Error>(fixed.error());
    out_.low = settle(*fixed, Bound::low);
    out_.high = settle(*fixed, Bound::high);
    out_.middle = settle(*std::move(fixed), Bound::middle);
    out_.graphs = static_cast<std::int64_t>(captured_batches(options_, out_.middle.requests.rows).size());
    return std::move(out_);
  }

 private:
  // What no measured figure moves.
  Expected<std::vector<StageBudget>> fixed_parts(const model::Quantisation* quantisation) const {
    std::vector<StageBudget> out;
    const std::int64_t towers = architecture_.encoder_layers;
    const std::int64_t layers = architecture_.layer_count() - towers;
    for (serving::Stage stage : serving::pipeline_stages(layers, options_.pp, serving::LayersLeft::the_last)) {
      stage.first += towers;
      stage.last += towers;
      auto plan = plan_pools(architecture_, options_, stage.first, stage.last);
      if (!plan) return tl::unexpected<Error>(plan.error());
      StageBudget made;
      made.stage = stage;
      made.plan = std::move(*plan);
      made.weights = serving::rank_weights(architecture_, shares_of(options_), stage, quantisation);
      out.push_back(std::move(made));
    }
    return out;
  }

  // Sizes with rest_bytes, and those of one request where nothing bounds them.
  PoolSizes sizes_of(const StageBudget& stage) const {
    if (card_ != nullptr || options_.max_total_tokens) return size_pools(stage.plan, options_, card_, stage.rest_bytes);
    PoolSizes one;
    one.states = stage.plan.states() > 0 ? 3 : 0;
    one.measured_tokens = divide_up(options_.context_length, options_.page_size) * options_.page_size;
    return pools_of_tokens(stage.plan, options_, one, one.measured_tokens);
  }

  Settled settle(std::vector<StageBudget> stages, Bound bound) const {
    const Surroundings around = surroundings(options_, card_, bound);
    Settled out;
    out.stages = std::move(stages);
    out.context_bytes = gib(figure("context_gib", around));
    out.workspace_bytes = gib(figure("attention_workspace_gib", around));
    out.before_bytes = std::max<std::int64_t>(0, out_.total_bytes - used_bytes_ - out.context_bytes);
    for (std::size_t i = 0; i < out.stages.size(); ++i) {
      StageBudget& stage = out.stages[i];
      stage.rest_bytes = part(out.before_bytes, options_.mem_fraction_static) - stage.weights.bytes();
      stage.sizes = sizes_of(stage);
      const PoolSizes& fewest = out.stages[out.tightest].sizes;
      if (stage.plan.keeps_tokens() && stage.sizes.tokens < fewest.tokens) out.tightest = i;
    }
    out.requests = most_requests(out.at().plan, options_, card_, out.at().sizes);
    for (StageBudget& stage : out.stages) fill(stage, out, around);
    out.outcome = outcome_of(out);
    return out;
  }

  void fill(StageBudget& stage, const Settled& settled, const Surroundings& around) const {
    if (stage.plan.keeps_tokens())
      stage.sizes = pools_of_tokens(stage.plan, options_, stage.sizes, settled.at().sizes.tokens);
    stage.pools = pool_bytes(stage.plan, options_, stage.sizes, settled.requests);
    const auto graphs = static_cast<double>(captured_batches(options_, settled.requests.rows).size());
    const auto layers = static_cast<double>(stage.stage.last - stage.stage.first);
    stage.graph_bytes = mib(figure("graph_mib_per_layer_and_size", around) * graphs * layers);
    stage.activations = activations_of(stage.stage, settled, around);
  }

  Activations activations_of(const serving::Stage& stage, const Settled& settled, const Surroundings& around) const {
    Activations out;
    const std::int64_t tokens = std::min(options_.prefill_tokens(), settled.at().sizes.tokens);
    const std::int64_t width = size_of(options_.dtype);
    const double ffn_copies = figure("forward_ffn_copies", around);
    const double hidden_copies = figure("forward_hidden_copies", around);
    // Under data-parallel attention the feed-forward parts see the tokens of all copies.
    const std::int64_t gathered = tokens * options_.attention_copies();
    for (std::int64_t layer = stage.first; layer < stage.last; ++layer) {
      const model::LayerKind& kind = architecture_.kind_of(layer);
      const std::int64_t ffn = divide_up(serving::dense_width(kind), options_.tp);
      const double a_token =
          ffn_copies * static_cast<double>(ffn) + hidden_copies * static_cast<double>(architecture_.hidden);
      out.forward_bytes =
          std::max(out.forward_bytes, static_cast<std::int64_t>(a_token * static_cast<double>(gathered * width)));
      if (expert_workspaces_)
        out.workspace_bytes =
            std::max(out.workspace_bytes,
                     serving::expert_workspace(kind, architecture_.hidden, gathered, options_.tp / options_.ep, width));
    }
    const std::int64_t rows = std::min(settled.requests.running, options_.cuda_graph_max_bs);
    if (stage.heads)
      out.logits_bytes = static_cast<std::int64_t>(figure("bytes_per_logit", around) *
                                                   static_cast<double>(architecture_.vocab * rows));
    return out;
  }

  Outcome outcome_of(const Settled& settled) const {
    const StageBudget& stage = settled.at();
    if (card_ != nullptr) {
      for (const StageBudget& each : settled.stages) {
        if (each.weights.bytes() > settled.before_bytes) return Outcome::weights_too_large;
      }
    }
    if (!stage.sizes.fits || (card_ != nullptr && stage.rest_bytes <= 0)) return Outcome::no_room;
    if (stage.plan.states() > 0 && settled.requests.running < 1) return Outcome::too_few_states;
    if (card_ == nullptr) return Outcome::starts;
    for (std::size_t i = 0; i < settled.stages.size(); ++i) {
      const std::int64_t free = settled.free_bytes(i);
      if (free < 0) return Outcome::graphs_overflow;
      if (free < settled.stages[i].activations.bytes()) return Outcome::prefill_overflow;
    }
    return Outcome::starts;
  }

  const model::Architecture& architecture_;
  const Options& options_;
  const hardware::Gpu* card_;
  std::int64_t used_bytes_;
  bool expert_workspaces_ = true;
  Budget out_;
};

}  // namespace

std::int64_t Settled::free_bytes(std::size_t stage) const {
  const StageBudget& of = stages[stage];
  return before_bytes - of.weights.bytes() - of.pools.bytes() - workspace_bytes - of.graph_bytes;
}

std::int64_t Settled::process_bytes(std::size_t stage) const {
  const StageBudget& of = stages[stage];
  return context_bytes + of.weights.bytes() + of.pools.bytes() + workspace_bytes + of.graph_bytes +
         of.activations.bytes();
}

std::optional<double> Budget::least_fraction(const Options& options) const {
  if (middle.before_bytes <= 0) return std::nullopt;
  double out = 0;
  for (const StageBudget& stage : middle.stages) {
    const std::int64_t page = stage.plan.bytes_per_token() * options.page_size + stage.plan.states();
    const double needs = static_cast<double>(stage.weights.bytes() + page);
    out = std::max(out, needs / static_cast<double>(middle.before_bytes));
  }
  constexpr double kSteps = 1000;
  out = std::ceil(out * kSteps) / kSteps;
  if (out >= 1) return std::nullopt;
  return out;
}

Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                       std::int64_t used_bytes, const model::Quantisation* quantisation) {
  return Starter(architecture, options, card, used_bytes).run(quantisation);
}

}  // namespace ullage::engines::sglang
