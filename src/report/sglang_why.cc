#include "report/sglang_why.h"

#include <initializer_list>

#include "engines/sglang/graphs.h"
#include "engines/sglang/rules.h"
#include "report/engine_rules.h"

namespace ullage::report {
namespace {

namespace sglang = engines::sglang;
using memory::Component;

std::string cite_all(const SglangQuestion& q, std::string_view code, std::initializer_list<std::string_view> items) {
  std::string out(code);
  for (const std::string_view item : items) {
    const std::string cited = cite(sglang::rule(item, sglang::surroundings(q.options, q.gpu)));
    out += (out.empty() ? "" : "; ") + cited;
  }
  return out;
}

Message measured(Text text, std::int64_t low, std::int64_t high) {
  return {text, {{"low", Bytes{low}}, {"high", Bytes{high}}}};
}

Why weights_why(const SglangQuestion& q) {
  const engines::serving::RankWeights& weights = q.budget.middle.at().weights;
  Why out{{Text::why_sglang_weights, {}},
          {{"tp", q.options.tp},
           {"pp", q.options.pp},
           {"ep", q.options.ep},
           {"attention_ranks", q.options.attention_ranks()},
           {"parameters", weights.parameters_bytes}},
          "sglang/srt/layers/linear.py, vocab_parallel_embedding.py, moe/fused_moe_triton/layer.py; "
          "sglang/srt/distributed/utils.py"};
  if (weights.absorbed_bytes > 0) out.values.emplace_back("absorbed_latent", weights.absorbed_bytes);
  if (weights.draft_bytes > 0) out.values.emplace_back("drafting_layers", weights.draft_bytes);
  if (weights.offloaded_bytes > 0) out.values.emplace_back("offloaded", weights.offloaded_bytes);
  return out;
}

Why rotary_why(const SglangQuestion& q) {
  const model::Rotary& rotary = q.architecture.rotary;
  return {{Text::why_sglang_rotary, {}},
          {{"dimensions", rotary.dim}, {"positions", rotary.max_positions}},
          "sglang/srt/layers/rotary_embedding"};
}

// The share was given, or the rules that make it.
std::string fraction_source(const SglangQuestion& q) {
  constexpr std::string_view kCode =
      "sglang/srt/model_executor/model_runner.py (profile_max_num_token), pool_configurator.py";
  if (!q.automatic_fraction) return std::string(kCode);
  if (q.gpu == nullptr || q.options.version < sglang::kReserves) return cite_all(q, kCode, {"fraction_by_ranks"});
  return cite_all(q, kCode,
                  {"reserve_base_mib", "reserve_mib_per_prefill_token", "reserve_mib_per_graph_batch",
                   "reserve_mib_per_rank", "reserve_floor_mib"});
}

Why pools_why(const SglangQuestion& q) {
  const sglang::Settled& m = q.budget.middle;
  const sglang::StageBudget& stage = m.at();
  Why out;
  out.source = fraction_source(q);
  if (q.gpu == nullptr) {
    out.rule = {q.options.max_total_tokens ? Text::why_sglang_pools_given : Text::why_sglang_pools_least, {}};
  } else {
    out.rule = {
        stage.sizes.tokens < stage.sizes.measured_tokens ? Text::why_sglang_pools_given : Text::why_sglang_pools, {}};
    out.values = {{"free_before_weights", m.before_bytes},
                  {"weights", stage.weights.bytes()},
                  {"left_to_pools", stage.rest_bytes}};
  }
  out.values.emplace_back("bytes_per_token", stage.plan.bytes_per_token());
  out.values.emplace_back("tokens", stage.sizes.tokens);
  if (!stage.plan.windows.empty()) {
    out.values.emplace_back("tokens_of_windows", stage.sizes.window_tokens);
    out.source = cite_all(q, out.source, {"window_pool", "swa_full_tokens_ratio"});
  }
  out.values.emplace_back("request_table", stage.pools.request_table);
  out.values.emplace_back("rounding", stage.pools.rounding);
  out.source = cite_all(q, out.source, {"requests_per_context"});
  return out;
}

Why states_why(const SglangQuestion& q) {
  const sglang::StageBudget& stage = q.budget.middle.at();
  return {{Text::why_sglang_states, {}},
          {{"states", stage.sizes.states}, {"state_bytes", stage.plan.states()}},
          cite_all(q, "sglang/srt/model_executor/model_runner_kv_cache_mixin.py (handle_max_mamba_cache)",
                   {"mamba_full_memory_ratio", "states_per_request"})};
}

Why activations_why(const SglangQuestion& q) {
  const sglang::Activations& a = q.budget.middle.at().activations;
  return {{Text::why_sglang_activations, {}},
          {{"forward", a.forward_bytes},
           {"expert_workspaces", a.workspace_bytes},
           {"logits", a.logits_bytes},
           {"chunked_prefill_size", q.options.chunked_prefill_size}},
          cite_all(q, "", {"forward_ffn_copies", "forward_hidden_copies", "bytes_per_logit"})};
}

Why graphs_why(const SglangQuestion& q) {
  const std::size_t at = q.budget.middle.tightest;
  const engines::serving::Stage& stage = q.budget.middle.at().stage;
  return {measured(Text::why_sglang_graphs, q.budget.low.stages[at].graph_bytes, q.budget.high.stages[at].graph_bytes),
          {{"graphs", q.budget.graphs},
           {"largest_batch", q.options.cuda_graph_max_bs},
           {"layers", stage.last - stage.first}},
          cite_all(q, "sglang/srt/server_args.py (_generate_cuda_graph_batch_sizes)",
                   {"cuda_graph_max_bs", "graph_mib_per_layer_and_size"})};
}

}  // namespace

Why sglang_why(const SglangQuestion& q, Component component) {
  switch (component) {
    case Component::parameters: return weights_why(q);
    case Component::buffers: return rotary_why(q);
    case Component::kv_cache: return pools_why(q);
    case Component::recurrent_state: return states_why(q);
    case Component::activations: return activations_why(q);
    case Component::cuda_graphs: return graphs_why(q);
    case Component::workspace:
      return {measured(Text::why_sglang_workspace, q.budget.low.workspace_bytes, q.budget.high.workspace_bytes),
              {},
              cite_all(q, "", {"attention_workspace_gib"})};
    default:
      return {measured(Text::why_sglang_context, q.budget.low.context_bytes, q.budget.high.context_bytes),
              {},
              cite_all(q, "", {"context_gib"})};
  }
}

}  // namespace ullage::report
