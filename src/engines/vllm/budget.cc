#include "engines/vllm/budget.h"

#include <algorithm>
#include <cmath>

#include "engines/serving/arithmetic.h"

namespace ullage::engines::vllm {
namespace {

using serving::gib;
bool has_experts(const model::Architecture& architecture) {
  return std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                     [](const model::LayerKind& kind) { return kind.mixture.experts.count > 0; });
}

bool keeps_states(const CachePlan& plan) {
  return std::any_of(plan.groups.begin(), plan.groups.end(),
                     [](const CacheGroup& group) { return group.spec.use == CacheUse::state; });
}

class Starter {
 public:
  Starter(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
          std::int64_t used_bytes)
      : architecture_(architecture), options_(options), card_(card), used_bytes_(used_bytes) {}

  Expected<Budget> run(const model::Quantisation* quantisation) {
    const Surroundings around = surroundings(Bound::middle);
    if (card_ != nullptr) {
      const auto total = static_cast<double>(card_->usable_bytes);
      out_.total_bytes = card_->usable_bytes;
      out_.requested_bytes = static_cast<std::int64_t>(std::ceil(total * options_.gpu_memory_utilization));
    }
    out_.graphs_charged = options_.graphs_in_budget.value_or(rule("graphs_in_budget", around).value > 0);
    expert_workspaces_ = !has_mxfp4_experts(architecture_, quantisation);
    out_.estimates_graphs = out_.graphs_charged || options_.version >= kEstimatesGraphs;
    auto fixed = fixed_parts(quantisation);
    if (!fixed) return tl::unexpected<Error>(fixed.error());
    out_.low = settle(*fixed, Bound::low);
    out_.high = settle(*fixed, Bound::high);
    out_.middle = settle(*std::move(fixed), Bound::middle);
    return std::move(out_);
  }

 private:
  Surroundings surroundings(Bound bound) const {
    return {options_.version,
            card_,
            options_.tensor_parallel_size,
            options_.pipeline_parallel_size,
            bound,
            architecture_.family,
            has_experts(architecture_)};
  }

  // What no measured figure moves.
  Expected<std::vector<StageBudget>> fixed_parts(const model::Quantisation* quantisation) const {
    std::vector<StageBudget> out;
    const std::int64_t towers = architecture_.encoder_layers;
    for (Stage stage : pipeline_stages(architecture_.layer_count() - towers, options_.pipeline_parallel_size)) {
      stage.first += towers;
      stage.last += towers;
      auto cache = plan_cache(architecture_, options_, stage.first, stage.last);
      if (!cache) return tl::unexpected<Error>(cache.error());
      StageBudget made;
      made.stage = stage;
      made.cache = std::move(*cache);
      made.weights = rank_weights(architecture_, options_, stage, quantisation);
      out.push_back(std::move(made));
    }
    return out;
  }

  std::int64_t available_bytes(const StageBudget& stage, const Settled& settled) const {
    if (options_.kv_cache_memory_bytes) return *options_.kv_cache_memory_bytes;
    if (card_ == nullptr)
      return blocks_per_request(stage.cache, options_, options_.max_model_len) * stage.cache.block_bytes;
    return out_.requested_bytes - stage.weights.bytes() - stage.peak.bytes() - settled.non_torch_bytes -
           (out_.graphs_charged ? settled.graph_estimate_bytes : 0) -
           (charges_others(options_.version) ? used_bytes_ : 0);
  }

  Settled settle(std::vector<StageBudget> stages, Bound bound) const {
    const Surroundings around = surroundings(bound);
    Settled out;
    out.stages = std::move(stages);
    out.context_bytes = gib(figure("context_gib", around));
    out.non_torch_bytes = gib(figure("non_torch_gib", around));
    std::int64_t fewest = 0;
    for (std::size_t i = 0; i < out.stages.size(); ++i) {
      StageBudget& stage = out.stages[i];
      stage.peak = profile_peak(architecture_, options_, stage.stage, around, expert_workspaces_);
      stage.peak.states_bytes = stage.cache.states_beside * options_.max_num_seqs;
      stage.graph_bytes = graph_bytes(options_, stage.stage.last - stage.stage.first, around);
      stage.fragmentation_bytes = gib(figure("fragmentation_gib", around));
      if (i == 0) out.graph_estimate_bytes = stage.graph_bytes;
      stage.available_bytes = available_bytes(stage, out);
      const std::int64_t blocks = capacity(stage.cache, options_, stage.available_bytes).blocks;
      const bool tighter =
          blocks < fewest || (blocks == fewest && stage.available_bytes < out.stages[out.tightest].available_bytes);
      if (i > 0 && !tighter) continue;
      fewest = blocks;
      out.tightest = i;
    }
    const StageBudget& tightest = out.stages[out.tightest];
    out.pool_bytes = tightest.available_bytes;
    out.capacity = capacity(tightest.cache, options_, tightest.available_bytes);
    judge(out);
    return out;
  }

  // What refuses the start, and how much memory would let it pass.
  void judge(Settled& settled) const {
    const StageBudget& stage = settled.stages[settled.tightest];
    const bool budgets = card_ != nullptr && !options_.kv_cache_memory_bytes;
    const bool looks = budgets && options_.version >= kOwnInstance && used_bytes_ > 0;
    const auto lacks = [&](Outcome outcome, std::int64_t bytes) {
      if (bytes <= 0 || settled.outcome != Outcome::starts) return;
      settled.outcome = outcome;
      settled.short_bytes = bytes;
    };
    const std::int64_t free = out_.total_bytes - used_bytes_;
    if (looks) lacks(Outcome::card_in_use, out_.requested_bytes - (free - settled.context_bytes));
    if (card_ != nullptr) lacks(Outcome::weights_too_large, stage.weights.bytes() + settled.context_bytes - free);
    const std::int64_t block = stage.cache.block_bytes;
    if (block > 0) {
      const std::int64_t wanted = blocks_per_request(stage.cache, options_, options_.max_model_len) * block;
      if (settled.pool_bytes <= 0) lacks(Outcome::no_room, wanted - settled.pool_bytes);
      if (settled.capacity.max_concurrency < 1)
        lacks(Outcome::too_few_blocks, std::max<std::int64_t>(1, wanted - settled.pool_bytes));
    }
    if (options_.version >= kCountsStates && keeps_states(stage.cache))
      lacks(Outcome::too_few_states, (options_.max_num_seqs - settled.capacity.blocks) * block);
    if (card_ == nullptr) return;
    lacks(Outcome::graphs_overflow, settled.start_bytes(settled.tightest, options_) - free);
  }

  const model::Architecture& architecture_;
  const Options& options_;
  const hardware::Gpu* card_;
  std::int64_t used_bytes_;
  bool expert_workspaces_ = true;
  Budget out_;
};

}  // namespace

std::int64_t Settled::cache_bytes(std::size_t stage) const { return capacity.blocks * stages[stage].cache.block_bytes; }

std::int64_t Settled::process_bytes(std::size_t stage) const {
  const StageBudget& of = stages[stage];
  return context_bytes + non_torch_bytes + of.weights.bytes() + cache_bytes(stage) + of.peak.bytes() + of.graph_bytes +
         of.fragmentation_bytes;
}

std::int64_t Settled::start_bytes(std::size_t stage, const Options& options) const {
  const ProfilePeak& peak = stages[stage].peak;
  return process_bytes(stage) - (is_v1(options.version) ? 0 : peak.bytes() - peak.states_bytes);
}

Span Budget::process() const {
  const std::size_t at = middle.tightest;
  const std::int64_t first = low.process_bytes(at);
  const std::int64_t second = middle.process_bytes(at);
  const std::int64_t third = high.process_bytes(at);
  return {std::min({first, second, third}), second, std::max({first, second, third})};
}

Span Budget::pool() const {
  const std::size_t at = middle.tightest;
  return {high.cache_bytes(at), middle.cache_bytes(at), low.cache_bytes(at)};
}

Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                       std::int64_t used_bytes, const model::Quantisation* quantisation) {
  return Starter(architecture, options, card, used_bytes).run(quantisation);
}

std::int64_t longest_request(const CachePlan& plan, const Options& options, std::int64_t blocks) {
  std::int64_t fits = 0;
  std::int64_t too_long = options.max_model_len + 1;
  while (too_long - fits > 1) {
    const std::int64_t middle = fits + (too_long - fits) / 2;
    if (blocks_per_request(plan, options, middle) <= blocks) fits = middle;
    else too_long = middle;
  }
  return fits;
}

}  // namespace ullage::engines::vllm
