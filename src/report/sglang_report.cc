#include "report/sglang_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/sglang/words.h"
#include "report/serving_parts.h"
#include "report/sglang_why.h"

namespace ullage::report {
namespace {

namespace sglang = engines::sglang;
using memory::Component;
using memory::Level;
using sglang::Outcome;

Text text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::starts: return Text::outcome_starts;
    case Outcome::weights_too_large: return Text::outcome_weights_too_large;
    case Outcome::no_room: return Text::outcome_sglang_no_room;
    case Outcome::too_few_states: return Text::outcome_sglang_states;
    case Outcome::graphs_overflow: return Text::outcome_sglang_overflow;
    case Outcome::prefill_overflow: return Text::outcome_prefill_overflow;
  }
  return Text::outcome_sglang_no_room;
}

std::vector<std::pair<Component, std::int64_t>> parts_of(const sglang::Settled& settled, std::size_t at) {
  const sglang::StageBudget& stage = settled.stages[at];
  const std::int64_t states = stage.pools.conv_states + stage.pools.states;
  std::vector<std::pair<Component, std::int64_t>> out{
      {Component::parameters, stage.weights.bytes() - stage.weights.rotary_bytes}};
  if (stage.weights.rotary_bytes > 0) out.emplace_back(Component::buffers, stage.weights.rotary_bytes);
  out.emplace_back(Component::kv_cache, stage.pools.bytes() - states);
  if (states > 0) out.emplace_back(Component::recurrent_state, states);
  out.emplace_back(Component::activations, stage.activations.bytes());
  out.emplace_back(Component::workspace, settled.workspace_bytes);
  out.emplace_back(Component::cuda_graphs, stage.graph_bytes);
  out.emplace_back(Component::context, settled.context_bytes);
  return out;
}

// Graphs and contexts are not in what PyTorch's allocator counts as allocated by tensors.
Level level_of(Component component) {
  return component == Component::cuda_graphs || component == Component::context ? Level::process : Level::allocated;
}

void add_parts(Peak& peak, std::vector<ComponentLine>& components, const SglangQuestion& q, std::size_t stage) {
  for (const auto& [component, bytes] : parts_of(q.budget.middle, stage)) {
    const Level level = level_of(component);
    if (level == Level::allocated) peak.allocated_bytes += bytes;
    Why why = sglang_why(q, component);
    components.push_back({component, level, bytes, std::move(why)});
  }
}

memory::Range process_range(const sglang::Budget& b, std::size_t at) {
  const auto [low, high] = std::minmax({b.low.process_bytes(at), b.middle.process_bytes(at), b.high.process_bytes(at)});
  return {low, high};
}

Moment whole_chunk() { return {true, memory::Phase::forward, "largest chunk", "", {}}; }

// Pools that do not come to be are in no process.
bool holds_pools(const SglangQuestion& q) {
  return q.budget.middle.outcome != Outcome::weights_too_large && q.budget.middle.outcome != Outcome::no_room;
}

RankLine rank_of(const SglangQuestion& q, std::size_t stage) {
  sglang::Budget there = q.budget;  // so that the reasons speak of this stage
  there.middle.tightest = stage;
  const SglangQuestion asked = {q.architecture, q.options,  there,        q.gpu,
                                q.quantisation, q.workload, q.used_bytes, q.automatic_fraction};
  RankLine out;
  add_parts(out.peak, out.components, asked, stage);
  out.peak.process_bytes = q.budget.middle.process_bytes(stage);
  out.peak.at = whole_chunk();
  name_stage(out, stage, q.gpu, q.used_bytes);
  return out;
}

void add_fit(Prediction& out, const SglangQuestion& q) {
  if (q.gpu == nullptr) return;
  out.fit.fits = q.budget.middle.outcome == Outcome::starts;
  out.fit.certain = q.budget.certain();
  const std::int64_t usable = q.gpu->usable_bytes - q.used_bytes;
  out.fit.headroom_bytes = usable - *out.peak.process_bytes;
  out.fit.headroom_at_most_bytes = usable - out.peak.allocated_bytes;
}

std::int64_t window_of(const model::Architecture& architecture) {
  std::int64_t out = 0;
  for (const model::LayerKind& kind : architecture.kinds) {
    for (const model::TokenCache& cache : model::token_caches(kind)) out = std::max(out, cache.window.value_or(0));
  }
  return out;
}

std::int64_t held(const SglangQuestion& q, std::int64_t tokens) {
  const sglang::StageBudget& stage = q.budget.middle.at();
  return sglang::requests_held(stage.plan, q.options, stage.sizes, tokens, window_of(q.architecture));
}

ServeFacts serve_facts(const SglangQuestion& q) {
  const sglang::Budget& b = q.budget;
  const sglang::Settled& m = b.middle;
  const std::size_t at = m.tightest;
  const sglang::StageBudget& stage = m.at();
  ServeFacts out;
  out.weights_bytes = stage.weights.bytes();
  out.kv_bytes = stage.pools.tokens();
  out.kv_range = range_of(b.low.stages[at].pools.tokens(), b.high.stages[at].pools.tokens());
  out.kv_bytes_per_token = stage.plan.bytes_per_token();
  out.kv_tokens = stage.sizes.tokens;
  out.kv_tokens_printed = stage.sizes.tokens;
  out.kv_block_size = q.options.page_size;
  out.kv_blocks = stage.sizes.tokens / q.options.page_size;
  out.max_concurrency = static_cast<double>(stage.sizes.tokens) / static_cast<double>(q.options.context_length);
  out.activation_peak_bytes = stage.activations.bytes();
  out.activation_peak_range = range_of(b.low.stages[at].activations.bytes(), b.high.stages[at].activations.bytes());
  out.context_bytes = m.context_bytes;
  out.context_range = range_of(b.low.context_bytes, b.high.context_bytes);
  out.cuda_graph_bytes = stage.graph_bytes;
  out.cuda_graph_range = range_of(b.low.stages[at].graph_bytes, b.high.stages[at].graph_bytes);
  out.weights_load_peak_bytes = stage.weights.bytes();
  return out;
}

struct WorkloadLimits {
  std::int64_t pages = 0;
  std::int64_t most = 0;
  std::string limit;
};

WorkloadLimits limits_of(const SglangQuestion& q) {
  const std::int64_t tokens = q.workload->kept_tokens();
  const std::int64_t by_pools = held(q, tokens);
  const std::int64_t running = q.budget.middle.requests.running;
  return {(tokens + q.options.page_size - 1) / q.options.page_size, std::min(by_pools, running),
          by_pools < running ? "max_total_num_tokens" : "max_running_requests"};
}

void add_workload(std::vector<Message>& out, const SglangQuestion& q) {
  const WorkloadLimits limits = limits_of(q);
  const std::int64_t wanted = q.workload->concurrency.value_or(0);
  Text key = Text::capacity_tokens_pages;
  if (q.workload->concurrency) key = wanted <= limits.most ? Text::workload_holds : Text::workload_preempts;
  out.push_back({key,
                 {{"input", Count{q.workload->input_tokens}},
                  {"output", Count{q.workload->output_tokens}},
                  {"pages", Count{limits.pages}},
                  {"blocks", Count{limits.pages}},
                  {"limit", limits.limit},
                  {"most", Count{limits.most}},
                  {"wanted", Count{wanted}}}});
}

// What the pools carry, in words.
std::vector<Message> capacity_of(const SglangQuestion& q) {
  const sglang::Settled& m = q.budget.middle;
  const sglang::StageBudget& stage = m.at();
  const sglang::Options& o = q.options;
  std::vector<Message> out;
  if (!stage.plan.keeps_tokens() && stage.plan.states() == 0) return {{Text::capacity_none, {}}};
  if (!holds_pools(q)) {
    if (const auto least = q.budget.least_fraction(o))
      out.push_back({Text::capacity_least_fraction, {{"fraction", fmt::format("{:.3f}", *least)}}});
    return out;
  }
  const std::int64_t per_token = stage.plan.bytes_per_token();
  out.push_back({Text::capacity_tokens,
                 {{"bytes", Bytes{per_token}},
                  {"exact", Count{per_token}},
                  {"tokens", Count{stage.sizes.tokens}},
                  {"page", Count{o.page_size}}}});
  if (!stage.plan.windows.empty() && !stage.plan.full.empty())
    out.push_back(
        {Text::capacity_windows,
         {{"windows", Count{stage.sizes.window_tokens}}, {"ratio", fmt::format("{:g}", o.swa_full_tokens_ratio)}}});
  if (stage.plan.states() > 0)
    out.push_back(
        {Text::capacity_states,
         {{"states", Count{stage.sizes.states}},
          {"bytes", Bytes{stage.plan.states()}},
          {"each",
           Count{o.disable_radix_cache ? 1 : sglang::count("states_per_request", sglang::surroundings(o, q.gpu))}}}});
  out.push_back({Text::capacity_running,
                 {{"running", Count{m.requests.running}},
                  {"length", Count{o.context_length}},
                  {"requests", Count{std::min(m.requests.running, held(q, o.context_length))}}}});
  if (stage.plan.keeps_tokens() && stage.sizes.tokens < o.context_length)
    out.push_back(
        {Text::capacity_shorter, {{"length", Count{o.context_length}}, {"tokens", Count{stage.sizes.tokens}}}});
  if (q.workload != nullptr) add_workload(out, q);
  return out;
}

Startup startup_of(const SglangQuestion& q) {
  Startup out;
  out.engine = "SGLang";
  out.version = sglang::to_string(q.options.version);
  out.starts = q.budget.middle.outcome == Outcome::starts;
  out.outcome = {text_of(q.budget.middle.outcome), {}};
  out.refusal = sglang::refusal(q.budget, q.options);
  out.log = sglang::log_lines(q.budget, q.options);
  out.capacity = capacity_of(q);
  if (q.workload != nullptr) {
    const WorkloadLimits limits = limits_of(q);
    out.workload = Startup::Workload{q.workload->input_tokens, q.workload->output_tokens, limits.pages, limits.most,
                                     q.workload->concurrency};
  }
  if (q.gpu != nullptr)
    out.requested_bytes =
        static_cast<std::int64_t>(static_cast<double>(q.budget.middle.before_bytes) * q.options.mem_fraction_static);
  return out;
}

std::vector<Message> assumptions_of(const SglangQuestion& q) {
  const sglang::Options& o = q.options;
  std::vector<Message> out;
  out.push_back({Text::assume_sglang, {}});
  if (q.gpu == nullptr && !o.max_total_tokens) out.push_back({Text::assume_sglang_least, {}});
  if (q.gpu != nullptr && q.automatic_fraction)
    out.push_back({Text::assume_sglang_fraction,
                   {{"fraction", fmt::format("{:.4g}", o.mem_fraction_static)},
                    {"chunk", Count{o.chunked_prefill_size}},
                    {"batch", Count{o.cuda_graph_max_bs}}}});
  if (o.copies() > 1) out.push_back({Text::assume_sglang_copies, {{"copies", o.copies()}}});
  if (o.attention_copies() > 1)
    out.push_back({Text::assume_sglang_attention_copies, {{"copies", o.attention_copies()}}});
  if (q.quantisation != nullptr) out.push_back(stored_as(q.architecture, *q.quantisation));
  if (o.draft_layers() > 0) out.push_back({Text::assume_sglang_draft, {}});
  if (o.kt_num_gpu_experts) out.push_back({Text::assume_sglang_experts, {{"count", *o.kt_num_gpu_experts}}});
  if (o.cpu_offload_bytes > 0)
    out.push_back({Text::assume_vllm_offload, {{"bytes", Bytes{q.budget.middle.at().weights.offloaded_bytes}}}});
  return out;
}

}  // namespace

Prediction sglang_report(const SglangQuestion& q) {
  Prediction out;
  out.command = "serve";
  out.model = served_model(q.architecture, q.options.dtype);
  out.device = served_device(q.gpu, q.options.gpus());
  const std::size_t at = q.budget.middle.tightest;
  out.peak.process_bytes = q.budget.middle.process_bytes(at);
  out.peak.process_range = process_range(q.budget, at);
  add_parts(out.peak, out.components, q, at);
  add_stages(out, q.budget.middle.stages.size(), q.budget.middle.tightest, q.options.gpus(),
             [&](std::size_t stage) { return rank_of(q, stage); });
  add_fit(out, q);
  out.serve = serve_facts(q);
  out.startup = startup_of(q);
  out.peak.at = whole_chunk();
  out.assumptions = assumptions_of(q);
  return out;
}

}  // namespace ullage::report
