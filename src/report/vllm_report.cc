#include "report/vllm_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/vllm/words.h"
#include "report/serving_parts.h"
#include "report/vllm_why.h"

namespace ullage::report {
namespace {

namespace vllm = engines::vllm;
using memory::Component;
using memory::Level;
using vllm::Outcome;

Text text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::starts: return Text::outcome_starts;
    case Outcome::card_in_use: return Text::outcome_card_in_use;
    case Outcome::weights_too_large: return Text::outcome_weights_too_large;
    case Outcome::no_room: return Text::outcome_no_room;
    case Outcome::too_few_blocks: return Text::outcome_too_few_blocks;
    case Outcome::too_few_states: return Text::outcome_too_few_states;
    case Outcome::graphs_overflow: return Text::outcome_graphs_overflow;
  }
  return Text::outcome_no_room;
}

std::vector<std::pair<Component, std::int64_t>> parts_of(const vllm::Settled& settled, std::size_t at) {
  const vllm::StageBudget& stage = settled.stages[at];
  return {{Component::parameters, stage.weights.bytes() - stage.weights.rotary_bytes},
          {Component::buffers, stage.weights.rotary_bytes},
          {Component::kv_cache, settled.cache_bytes(at)},
          {Component::activations, stage.peak.bytes()},
          {Component::fragmentation, stage.fragmentation_bytes},
          {Component::cuda_graphs, stage.graph_bytes},
          {Component::libraries, settled.non_torch_bytes},
          {Component::context, settled.context_bytes}};
}

Why why_of(const VllmQuestion& q, Component component) {
  switch (component) {
    case Component::parameters: return vllm_weights_why(q);
    case Component::buffers: return vllm_rotary_why(q);
    case Component::kv_cache: return vllm_cache_why(q);
    case Component::activations: return vllm_activations_why(q);
    case Component::fragmentation: return vllm_fragmentation_why(q);
    case Component::cuda_graphs: return vllm_graphs_why(q);
    case Component::libraries: return vllm_non_torch_why(q);
    default: return vllm_context_why(q);
  }
}

// Graphs, libraries and contexts are not in what PyTorch's allocator counts as allocated by tensors.
Level level_of(Component component) {
  if (component == Component::fragmentation) return Level::reserved;
  const bool beside =
      component == Component::cuda_graphs || component == Component::libraries || component == Component::context;
  return beside ? Level::process : Level::allocated;
}

void add_parts(Peak& peak, std::vector<ComponentLine>& components, const VllmQuestion& q, std::size_t stage) {
  for (const auto& [component, bytes] : parts_of(q.budget.middle, stage)) {
    if (component == Component::fragmentation && bytes == 0) continue;
    const Level level = level_of(component);
    if (level == Level::allocated) peak.allocated_bytes += bytes;
    Why why = why_of(q, component);
    components.push_back({component, level, bytes, std::move(why)});
  }
}

void add_memory(Prediction& out, const VllmQuestion& q) {
  const vllm::Span process = q.budget.process();
  out.peak.process_bytes = process.middle;
  out.peak.process_range = memory::Range{process.low, process.high};
  add_parts(out.peak, out.components, q, q.budget.middle.tightest);
}

Moment largest_batch() { return {true, memory::Phase::forward, "largest batch", "", {}}; }

RankLine rank_of(const VllmQuestion& q, std::size_t stage) {
  vllm::Budget there = q.budget;  // so that the reasons speak of this stage
  there.middle.tightest = stage;
  const VllmQuestion asked{q.architecture, q.options, there, q.gpu, q.quantisation, q.workload, q.used_bytes};
  RankLine out;
  add_parts(out.peak, out.components, asked, stage);
  out.peak.process_bytes = q.budget.middle.process_bytes(stage);
  out.peak.at = largest_batch();
  name_stage(out, stage, q.gpu, q.used_bytes);
  return out;
}

void add_fit(Prediction& out, const VllmQuestion& q) {
  if (q.gpu == nullptr) return;
  out.fit.fits = q.budget.middle.outcome == Outcome::starts;
  out.fit.certain = q.budget.certain();
  const std::int64_t usable = q.gpu->usable_bytes - q.used_bytes;
  const vllm::Settled& settled = q.budget.middle;
  // A refusal within the card's memory lacks what the budget does.
  out.fit.headroom_bytes =
      *out.fit.fits ? usable - settled.start_bytes(settled.tightest, q.options) : -settled.short_bytes;
  out.fit.headroom_at_most_bytes = usable - out.peak.allocated_bytes;
  const std::int64_t over = *out.peak.process_bytes - usable;
  if (!*out.fit.fits || over <= 0) return;
  out.fit.certain = false;
  out.warnings.push_back({Text::warn_vllm_largest_batch, {{"bytes", Bytes{over}}}});
}

ServeFacts serve_facts(const VllmQuestion& q) {
  const vllm::Budget& b = q.budget;
  const vllm::Settled& m = b.middle;
  const std::size_t at = m.tightest;
  const vllm::StageBudget& stage = b.tightest();
  ServeFacts out;
  out.weights_bytes = stage.weights.bytes();
  out.kv_bytes = m.pool_bytes > 0 ? m.pool_bytes : 0;
  const vllm::Span pool{b.high.pool_bytes, m.pool_bytes, b.low.pool_bytes};
  out.kv_range = memory::Range{std::max<std::int64_t>(0, pool.low), std::max<std::int64_t>(0, pool.high)};
  out.kv_bytes_per_token = stage.cache.bytes_per_token;
  out.kv_tokens = m.capacity.tokens;
  out.kv_tokens_printed = m.capacity.tokens_printed;
  out.kv_blocks = m.capacity.blocks;
  out.kv_block_size = stage.cache.block_size;
  out.max_concurrency = m.capacity.max_concurrency;
  out.activation_peak_bytes = stage.peak.bytes();
  out.activation_peak_range = range_of(b.low.stages[at].peak.bytes(), b.high.stages[at].peak.bytes());
  out.context_bytes = m.context_bytes;
  out.context_range = range_of(b.low.context_bytes, b.high.context_bytes);
  out.non_torch_bytes = m.non_torch_bytes;
  out.non_torch_range = range_of(b.low.non_torch_bytes, b.high.non_torch_bytes);
  out.cuda_graph_bytes = stage.graph_bytes;
  out.cuda_graph_range = range_of(b.low.stages[at].graph_bytes, b.high.stages[at].graph_bytes);
  if (b.estimates_graphs) out.cuda_graph_estimate_bytes = m.graph_estimate_bytes;
  out.weights_load_peak_bytes = stage.weights.bytes() + vllm::load_peak_over_weights(q.options, q.gpu);
  return out;
}

vllm::WorkloadFit fit_of(const VllmQuestion& q) {
  return vllm::fit_workload(q.budget.tightest().cache, q.options, q.budget.middle.capacity.blocks, *q.workload);
}

void add_workload(std::vector<Message>& out, const VllmQuestion& q) {
  const vllm::WorkloadFit fit = fit_of(q);
  const std::int64_t wanted = q.workload->concurrency.value_or(0);
  Text key = fit.by_sequences ? Text::workload_by_sequences : Text::workload_by_blocks;
  if (q.workload->concurrency) key = wanted <= fit.most_requests ? Text::workload_holds : Text::workload_preempts;
  out.push_back({key,
                 {{"input", Count{q.workload->input_tokens}},
                  {"output", Count{q.workload->output_tokens}},
                  {"blocks", Count{fit.blocks_per_request}},
                  {"most", Count{fit.most_requests}},
                  {"wanted", Count{wanted}}}});
}

// What the pool carries, in words.
std::vector<Message> capacity_of(const VllmQuestion& q) {
  const vllm::CachePlan& plan = q.budget.tightest().cache;
  const vllm::Capacity& capacity = q.budget.middle.capacity;
  if (plan.block_bytes == 0) return {{Text::capacity_none, {}}};
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  std::vector<Message> out;
  out.push_back({Text::capacity_blocks,
                 {{"bytes", Bytes{plan.bytes_per_token}},
                  {"exact", Count{plan.bytes_per_token}},
                  {"blocks", Count{capacity.blocks}},
                  {"size", Count{plan.block_size}},
                  {"block", Bytes{plan.block_bytes}}}});
  if (groups > 1) out.push_back({Text::capacity_groups, {{"groups", groups}, {"padding", plan.padding_layers}}});
  const std::int64_t held = static_cast<std::int64_t>(capacity.max_concurrency);
  out.push_back(
      {Text::capacity_requests,
       {{"tokens", Count{capacity.tokens}}, {"requests", Count{held}}, {"length", Count{q.options.max_model_len}}}});
  if (q.workload != nullptr) add_workload(out, q);
  if (capacity.tokens_printed != capacity.tokens && vllm::is_v1(q.options.version))
    out.push_back({Text::capacity_print_differs, {{"printed", Count{capacity.tokens_printed}}}});
  return out;
}

Startup startup_of(const VllmQuestion& q) {
  Startup out;
  out.engine = "vLLM";
  out.version = vllm::to_string(q.options.release);
  out.starts = q.budget.middle.outcome == Outcome::starts;
  out.outcome = {text_of(q.budget.middle.outcome), {}};
  out.refusal = vllm::refusal(q.budget, q.options, q.used_bytes);
  out.log = vllm::log_lines(q.budget, q.options);
  out.capacity = capacity_of(q);
  if (q.workload != nullptr) {
    const vllm::WorkloadFit fit = fit_of(q);
    out.workload = Startup::Workload{q.workload->input_tokens, q.workload->output_tokens, fit.blocks_per_request,
                                     fit.most_requests, q.workload->concurrency};
  }
  if (q.gpu != nullptr && !q.options.kv_cache_memory_bytes) out.requested_bytes = q.budget.requested_bytes;
  return out;
}

std::optional<Text> first_engine_text(vllm::FirstEngine why) {
  switch (why) {
    case vllm::FirstEngine::no: return std::nullopt;
    case vllm::FirstEngine::by_release: return Text::assume_vllm_v0;
    case vllm::FirstEngine::by_model: return Text::assume_vllm_v0_model;
    case vllm::FirstEngine::by_card: return Text::assume_vllm_v0_card;
    case vllm::FirstEngine::by_env: return Text::assume_vllm_v0_asked;
  }
  return std::nullopt;
}

std::vector<Message> assumptions_of(const VllmQuestion& q) {
  std::vector<Message> out;
  out.push_back({Text::assume_vllm, {}});
  if (const auto why = first_engine_text(q.options.first_engine))
    out.push_back({*why, {{"version", vllm::to_string(q.options.release)}}});
  if (q.options.spreads_latents && q.architecture.layer_count() > 0 &&
      q.architecture.kinds.back().attention.latent.kv_rank > 0)
    out.push_back({Text::assume_vllm_spread, {}});
  if (q.gpu == nullptr && !q.options.kv_cache_memory_bytes) out.push_back({Text::assume_vllm_least, {}});
  if (q.budget.graphs_charged) out.push_back({Text::assume_vllm_graphs_charged, {}});
  else if (!q.options.enforce_eager) out.push_back({Text::assume_vllm_graphs_beside, {}});
  if (q.options.data_parallel_size > 1)
    out.push_back({Text::assume_vllm_copies, {{"copies", q.options.data_parallel_size}}});
  if (q.quantisation != nullptr) out.push_back(stored_as(q.architecture, *q.quantisation));
  if (q.options.draft_layers > 0) out.push_back({Text::assume_vllm_draft, {}});
  if (q.options.cpu_offload_bytes > 0)
    out.push_back({Text::assume_vllm_offload, {{"bytes", Bytes{q.budget.tightest().weights.offloaded_bytes}}}});
  return out;
}

}  // namespace

Prediction vllm_report(const VllmQuestion& q) {
  Prediction out;
  out.command = "serve";
  out.model = served_model(q.architecture, q.options.dtype);
  out.device = served_device(q.gpu, q.options.gpus());
  add_memory(out, q);
  add_stages(out, q.budget.middle.stages.size(), q.budget.middle.tightest, q.options.gpus(),
             [&](std::size_t stage) { return rank_of(q, stage); });
  add_fit(out, q);
  out.serve = serve_facts(q);
  out.startup = startup_of(q);
  out.peak.at = largest_batch();
  out.assumptions = assumptions_of(q);
  return out;
}

}  // namespace ullage::report
