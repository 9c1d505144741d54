#include "engines/vllm/budget.h"

#include <algorithm>
#include <cmath>

#include "engines/vllm/arithmetic.h"

namespace ullage::engines::vllm {
namespace {

Span span_of(const Rule& rule) { return {gib(rule.low), gib(rule.value), gib(rule.high)}; }

bool keeps_states(const CachePlan& plan) {
  return std::any_of(plan.groups.begin(), plan.groups.end(),
                     [](const CacheGroup& group) { return group.spec.use == CacheUse::state; });
}

Outcome outcome_of(const Budget& budget, const Options& options, std::int64_t used_bytes) {
  const CachePlan& plan = budget.stages[budget.tightest].cache;
  const std::int64_t free_bytes = budget.total_bytes - used_bytes - budget.context.middle;
  if (is_v1(options.version) && !options.kv_cache_memory_bytes && free_bytes < budget.requested_bytes && used_bytes > 0)
    return Outcome::card_in_use;
  if (budget.pool_bytes <= 0) return Outcome::no_room;
  if (budget.capacity.max_concurrency < 1) return Outcome::too_few_blocks;
  if (keeps_states(plan) && budget.capacity.blocks < options.max_num_seqs) return Outcome::too_few_states;
  return budget.process_bytes() + used_bytes > budget.total_bytes ? Outcome::graphs_overflow : Outcome::starts;
}

Expected<StageBudget> stage_budget(const model::Architecture& architecture, const Options& options,
                                   const Budget& budget, const Stage& stage, const Surroundings& around,
                                   const StoredBytes& stored) {
  auto cache = plan_cache(architecture, options, stage.first, stage.last);
  if (!cache) return tl::unexpected<Error>(cache.error());
  StageBudget out;
  out.stage = stage;
  out.weights = rank_weights(architecture, options, stage, stored);
  out.peak = profile_peak(architecture, options, stage, around);
  out.cache = std::move(*cache);
  out.available_bytes = budget.requested_bytes - out.weights.bytes() - out.peak.bytes() - budget.non_torch.middle -
                        (budget.graphs_charged ? budget.graphs.middle : 0);
  if (options.kv_cache_memory_bytes) out.available_bytes = *options.kv_cache_memory_bytes;
  return out;
}

}  // namespace

std::int64_t Budget::process_bytes() const {
  const StageBudget& stage = stages[tightest];
  const std::int64_t pool = capacity.blocks * stage.cache.block_bytes;
  return context.middle + non_torch.middle + stage.weights.bytes() + pool + stage.peak.bytes() + graphs.middle;
}

Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu& card,
                       std::int64_t used_bytes, const StoredBytes& stored) {
  const Surroundings around{options.version, &card, options.tensor_parallel_size, options.pipeline_parallel_size};
  Budget out;
  out.total_bytes = card.usable_bytes;
  out.requested_bytes =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(out.total_bytes) * options.gpu_memory_utilization));
  out.context = span_of(rule("context_gib", around));
  out.non_torch = span_of(rule("non_torch_gib", around));
  out.graphs_charged = rule("graphs_in_budget", around).value > 0;
  const std::vector<Stage> stages = pipeline_stages(architecture.layer_count(), options.pipeline_parallel_size);
  out.graphs = graph_bytes(options, stages.front().last - stages.front().first, around);
  for (const Stage& stage : stages) {
    auto budget = stage_budget(architecture, options, out, stage, around, stored);
    if (!budget) return tl::unexpected<Error>(budget.error());
    out.stages.push_back(std::move(*budget));
  }
  const auto blocks = [&](const StageBudget& s) { return capacity(s.cache, options, s.available_bytes).blocks; };
  const auto tightest = std::min_element(out.stages.begin(), out.stages.end(),
                                         [&](const auto& a, const auto& b) { return blocks(a) < blocks(b); });
  out.tightest = static_cast<std::size_t>(tightest - out.stages.begin());
  out.pool_bytes = tightest->available_bytes;
  out.capacity = capacity(tightest->cache, options, tightest->available_bytes);
  out.outcome = outcome_of(out, options, used_bytes);
  return out;
}

}  // namespace ullage::engines::vllm
