#include "report/budget_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/budget/rules.h"
#include "hardware/process_memory.h"
#include "report/engine_rules.h"
#include "report/serving_parts.h"

namespace ullage::report {
namespace {

namespace budget = engines::budget;
using budget::Engine;
using budget::Outcome;
using memory::Component;
using memory::Level;

Text text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::starts: return Text::outcome_starts;
    case Outcome::weights_too_large: return Text::outcome_weights_too_large;
    case Outcome::too_few_blocks: return Text::outcome_too_few_blocks;
    case Outcome::graphs_overflow: return Text::outcome_first_batch_overflows;
    default: return Text::outcome_budget_no_room;
  }
}

// What the engine itself says, where its words are known.
std::string refusal(const BudgetQuestion& q) {
  const Outcome outcome = q.account.outcome;
  if (outcome == Outcome::starts) return {};
  const bool room = outcome == Outcome::no_room || outcome == Outcome::too_few_blocks;
  switch (q.options.engine) {
    case Engine::tensorrt_llm:
      return room ? "Impossible to fit in any sequence in kvCache" : "CUDA runtime error in cudaMalloc: out of memory";
    case Engine::mindie:
      return room ? "MIE05E01000A: num_npu_blocks is a negative value during NPU memory allocation"
                  : "NPU out of memory";
    case Engine::lmdeploy: return room ? "No enough gpu memory for kv cache." : "CUDA runtime error: out of memory";
    case Engine::tgi:
      return fmt::format(
          "Not enough memory to handle {} prefill tokens. You need to decrease "
          "`--max-batch-prefill-tokens`",
          q.options.prefill_tokens);
  }
  return {};
}

std::vector<std::string> log_lines(const BudgetQuestion& q) {
  if (q.account.pool.blocks <= 0) return {};
  const auto gib = static_cast<double>(q.account.cache_bytes()) / static_cast<double>(kGiB);
  const std::int64_t tokens = q.account.pool.tokens_printed;
  constexpr budget::Version kAllocated{0, 9, 0};
  constexpr budget::Version kBlocksPrinted{2, 4, 0};
  switch (q.options.engine) {
    case Engine::tensorrt_llm:
      if (q.options.contiguous) return {};
      if (q.options.version >= kAllocated)
        return {
            fmt::format("[MemUsageChange] Allocated {:.2f} GiB for max tokens in paged KV cache ({}).", gib, tokens)};
      return {fmt::format("Using {} tokens in paged KV cache.", tokens)};
    case Engine::mindie: return {};
    case Engine::lmdeploy:
      if (q.options.pytorch) return {};
      return {fmt::format("[BlockManager] max_block_count = {}", q.account.pool.blocks)};
    case Engine::tgi:
      if (q.options.version >= kBlocksPrinted)
        return {fmt::format("KV-cache blocks: {}, size: {}", q.account.pool.blocks, q.options.block_size)};
      return {fmt::format("Setting max batch total tokens to {}", tokens)};
  }
  return {};
}

std::string cite_of(const BudgetQuestion& q, std::string_view item) {
  return cite(budget::rule(q.options, item, q.gpu));
}

Why cache_why(const BudgetQuestion& q) {
  const budget::Account& a = q.account;
  Why out;
  out.values = {{"free_behind_weights", a.held.free_after_weights()},
                {"activations", a.held.activations},
                {"bytes_per_token", a.held.token},
                {"blocks", a.pool.blocks}};
  out.source = cite_of(q, "fraction") + "; " + cite_of(q, "block_size");
  switch (q.options.engine) {
    case Engine::tensorrt_llm:
      out.rule = {q.options.contiguous ? Text::why_trt_contiguous : Text::why_trt_cache, {}};
      out.source += "; " + cite_of(q, "paged");
      break;
    case Engine::mindie:
      out.rule = {q.options.pool_bytes ? Text::why_mindie_given : Text::why_mindie_cache, {}};
      out.source += "; " + cite_of(q, "idle_gib") + "; " + cite_of(q, "sampling_gib");
      break;
    case Engine::lmdeploy:
      out.rule = {q.options.pytorch ? Text::why_lmdeploy_pytorch : Text::why_lmdeploy_cache, {}};
      if (q.options.pytorch) out.values.emplace_back("set_aside", a.pool.reserved);
      break;
    case Engine::tgi:
      out.rule = {Text::why_tgi_cache, {}};
      out.source += "; " + cite_of(q, "wiggle_room");
      break;
  }
  if (q.gpu == nullptr && !q.options.pool_bytes && !q.options.blocks) out.rule = {Text::why_vllm_cache_least, {}};
  return out;
}

Why measured_why(const BudgetQuestion& q, Text text, bool context) {
  const hardware::ProcessMemory process = hardware::process_memory(q.gpu);
  const hardware::MeasuredBytes& part = context ? process.context : process.libraries;
  return {{text, {{"low", Bytes{part.low_bytes}}, {"high", Bytes{part.high_bytes}}}}, {}, part.source};
}

void add_parts(Prediction& out, const BudgetQuestion& q) {
  const budget::Account& a = q.account;
  const auto add = [&](Component component, Level level, std::int64_t bytes, Why why) {
    if (bytes == 0) return;
    if (level == Level::allocated) out.peak.allocated_bytes += bytes;
    out.components.push_back({component, level, bytes, std::move(why)});
  };
  const std::int64_t step = std::max(a.held.activations, a.pool.reserved);
  add(Component::parameters, Level::allocated, a.weights.bytes() - a.weights.rotary_bytes,
      {{Text::why_vllm_weights, {}},
       {{"tensor_parallel", q.options.tensor_parallel}, {"pipeline_parallel", q.options.pipeline_parallel}},
       "as vLLM's rules cut them"});
  add(Component::buffers, Level::allocated, a.weights.rotary_bytes,
      {{Text::why_vllm_rotary, {}}, {}, "as vLLM's rules keep them"});
  add(Component::kv_cache, Level::allocated, a.cache_bytes(), cache_why(q));
  add(Component::activations, Level::allocated, step,
      {{Text::why_budget_activations, {}},
       {{"prefill_tokens", q.options.prefill_tokens}, {"set_aside", a.pool.reserved}},
       cite_of(q, "forward_hidden_copies") + "; " + cite_of(q, "prefill_logit_bytes")});
  add(Component::libraries, Level::process, a.held.libraries, measured_why(q, Text::why_libraries, false));
  add(Component::context, Level::process, a.held.context, measured_why(q, Text::why_context, true));
}

void add_fit(Prediction& out, const BudgetQuestion& q) {
  if (q.gpu == nullptr) return;
  const budget::Account& a = q.account;
  const std::int64_t usable = a.held.total - a.held.used;
  out.fit.fits = a.outcome == Outcome::starts;
  out.fit.certain = a.certain;
  out.fit.headroom_bytes = *out.fit.fits ? usable - *out.peak.process_bytes : -a.short_bytes;
  out.fit.headroom_at_most_bytes = usable - out.peak.allocated_bytes;
}

ServeFacts serve_facts(const BudgetQuestion& q) {
  const budget::Account& a = q.account;
  ServeFacts out;
  out.weights_bytes = a.weights.bytes();
  out.kv_bytes = a.cache_bytes();
  const auto bytes_of = [&](const budget::Pool& pool) { return pool.blocks > 0 ? pool.tokens * a.held.token : 0; };
  out.kv_range = memory::Range{bytes_of(a.pool_low), bytes_of(a.pool_high)};
  out.kv_bytes_per_token = a.held.token;
  out.kv_tokens = a.pool.tokens;
  out.kv_tokens_printed = a.pool.tokens_printed;
  out.kv_blocks = a.pool.blocks;
  out.kv_block_size = q.options.block_size;
  out.max_concurrency = a.max_concurrency;
  out.activation_peak_bytes = std::max(a.held.activations, a.pool.reserved);
  if (q.options.engine == Engine::mindie || q.gpu == nullptr) return out;
  out.context_bytes = a.held.context;
  out.context_range = memory::Range{a.low.context, a.high.context};
  out.non_torch_bytes = a.held.libraries;
  out.non_torch_range = memory::Range{a.low.libraries, a.high.libraries};
  return out;
}

std::int64_t most_of(const BudgetQuestion& q, std::int64_t blocks) {
  const std::int64_t by_blocks = blocks > 0 ? q.account.pool.blocks / blocks : 0;
  return q.options.max_batch > 0 ? std::min(by_blocks, q.options.max_batch) : by_blocks;
}

std::vector<Message> capacity_of(const BudgetQuestion& q) {
  const budget::Account& a = q.account;
  std::vector<Message> out;
  out.push_back({Text::capacity_blocks,
                 {{"bytes", Bytes{a.held.token}},
                  {"exact", Count{a.held.token}},
                  {"blocks", Count{a.pool.blocks}},
                  {"size", Count{q.options.contiguous ? q.options.longest : q.options.block_size}},
                  {"block", Bytes{a.held.token * (q.options.contiguous ? q.options.longest : q.options.block_size)}}}});
  out.push_back({Text::capacity_requests,
                 {{"tokens", Count{a.pool.tokens}},
                  {"requests", Count{a.most_requests}},
                  {"length", Count{q.options.input_tokens + q.options.output_tokens}}}});
  if (a.outcome == Outcome::starts && a.max_concurrency < 1 && a.pool.tokens > 0)
    out.push_back({Text::capacity_shortened, {{"tokens", Count{a.pool.tokens}}}});
  return out;
}

void add_workload(Startup& out, const BudgetQuestion& q) {
  if (q.workload == nullptr) return;
  const std::int64_t blocks = budget::request_blocks(q.options, q.workload->input_tokens, q.workload->output_tokens);
  const std::int64_t most = most_of(q, blocks);
  const std::int64_t wanted = q.workload->concurrency.value_or(0);
  const bool by_batch = most == q.options.max_batch;
  Text key = by_batch ? Text::workload_by_batch : Text::workload_by_blocks;
  if (q.workload->concurrency) key = wanted <= most ? Text::workload_holds : Text::workload_preempts;
  out.capacity.push_back({key,
                          {{"input", Count{q.workload->input_tokens}},
                           {"output", Count{q.workload->output_tokens}},
                           {"blocks", Count{blocks}},
                           {"most", Count{most}},
                           {"wanted", Count{wanted}}}});
  out.workload =
      Startup::Workload{q.workload->input_tokens, q.workload->output_tokens, blocks, most, q.workload->concurrency};
}

Startup startup_of(const BudgetQuestion& q) {
  Startup out;
  out.engine = std::string(budget::title_of(q.options.engine));
  out.version = budget::to_string(q.options.version);
  out.starts = q.account.outcome == Outcome::starts;
  out.outcome = {text_of(q.account.outcome), {}};
  out.refusal = refusal(q);
  if (out.starts) out.log = log_lines(q);
  out.capacity = capacity_of(q);
  add_workload(out, q);
  return out;
}

std::vector<Message> assumptions_of(const BudgetQuestion& q) {
  std::vector<Message> out{{Text::assume_budget, {}}};
  if (q.options.engine == Engine::mindie) out.push_back({Text::assume_mindie, {}});
  if (q.gpu == nullptr && !q.options.pool_bytes && !q.options.blocks) out.push_back({Text::assume_vllm_least, {}});
  if (q.quantisation != nullptr) out.push_back({Text::assume_vllm_stored, {{"format", q.quantisation->name}}});
  return out;
}

}  // namespace

Prediction budget_report(const BudgetQuestion& q) {
  Prediction out;
  out.command = "serve";
  out.model = served_model(q.architecture, q.options.dtype);
  out.device = served_device(q.gpu, q.options.gpus());
  add_parts(out, q);
  const budget::Span process = q.account.process();
  out.peak.process_bytes = process.middle;
  out.peak.process_range = memory::Range{process.low, process.high};
  out.peak.at = {true, memory::Phase::forward, "largest batch", "", {}};
  out.total_process_bytes = process.middle * q.options.gpus();
  add_fit(out, q);
  out.serve = serve_facts(q);
  out.startup = startup_of(q);
  out.assumptions = assumptions_of(q);
  return out;
}

}  // namespace ullage::report
