#include "report/vllm_why.h"

#include <algorithm>
#include <initializer_list>

#include "engines/vllm/rules.h"
#include "report/engine_rules.h"

namespace ullage::report {
namespace {

namespace vllm = engines::vllm;

vllm::Surroundings around(const VllmQuestion& q) {
  const auto& kinds = q.architecture.kinds;
  const bool mixture = std::any_of(kinds.begin(), kinds.end(),
                                   [](const model::LayerKind& kind) { return kind.mixture.experts.count > 0; });
  return {q.options.version,
          q.gpu,
          q.options.tensor_parallel_size,
          q.options.pipeline_parallel_size,
          vllm::Bound::middle,
          q.architecture.family,
          mixture};
}

std::string cite_all(const VllmQuestion& q, std::string_view code, std::initializer_list<std::string_view> items) {
  std::string out(code);
  for (const std::string_view item : items) {
    const std::string cited = cite(vllm::rule(item, around(q)));
    out += (out.empty() ? "" : "; ") + cited;
  }
  return out;
}

Message measured(Text text, std::int64_t low, std::int64_t high) {
  return {text, {{"low", Bytes{low}}, {"high", Bytes{high}}}};
}

}  // namespace

Why vllm_weights_why(const VllmQuestion& q) {
  const vllm::RankWeights& weights = q.budget.tightest().weights;
  Why out{{Text::why_vllm_weights, {}},
          {{"tensor_parallel_size", q.options.tensor_parallel_size},
           {"pipeline_parallel_size", q.options.pipeline_parallel_size},
           {"parameters", weights.parameters_bytes}},
          "vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py, fused_moe/layer.py; "
          "vllm/distributed/utils.py"};
  if (weights.lora_bytes > 0) out.values.emplace_back("adapters", weights.lora_bytes);
  if (weights.draft_bytes > 0) out.values.emplace_back("drafting_layers", weights.draft_bytes);
  if (weights.offloaded_bytes > 0) out.values.emplace_back("offloaded", weights.offloaded_bytes);
  return out;
}

Why vllm_rotary_why(const VllmQuestion& q) {
  const model::Rotary& rotary = q.architecture.rotary;
  return {{Text::why_vllm_rotary, {}},
          {{"dimensions", rotary.dim}, {"positions", rotary.max_positions}},
          "vllm/model_executor/layers/rotary_embedding/"};
}

Why vllm_cache_why(const VllmQuestion& q) {
  const vllm::StageBudget& stage = q.budget.tightest();
  const vllm::Settled& settled = q.budget.middle;
  Why out;
  out.source = vllm::is_v1(q.options.version)
                   ? "vllm/v1/worker/gpu_worker.py (determine_available_memory), vllm/v1/core/kv_cache_utils.py"
                   : "vllm/worker/worker.py (determine_num_available_blocks), vllm/worker/cache_engine.py";
  if (q.options.kv_cache_memory_bytes) {
    out.rule = {Text::why_vllm_cache_given, {}};
    out.values = {{"kv_cache_memory_bytes", *q.options.kv_cache_memory_bytes}};
  } else if (q.gpu == nullptr) {
    out.rule = {Text::why_vllm_cache_least, {}};
    out.values = {{"max_model_len", q.options.max_model_len}};
  } else {
    out.rule = {q.budget.graphs_charged ? Text::why_vllm_cache_graphs : Text::why_vllm_cache, {}};
    out.values = {{"requested", q.budget.requested_bytes},
                  {"weights", stage.weights.bytes()},
                  {"activation_peak", stage.peak.bytes()},
                  {"non_torch", settled.non_torch_bytes}};
    if (q.budget.graphs_charged) out.values.emplace_back("cuda_graphs", settled.graph_estimate_bytes);
    out.source = cite_all(q, out.source, {"gpu_memory_utilization", "graphs_in_budget"});
  }
  out.values.emplace_back("block_bytes", stage.cache.block_bytes);
  out.values.emplace_back("blocks", settled.capacity.blocks);
  return out;
}

Why vllm_activations_why(const VllmQuestion& q) {
  const vllm::ProfilePeak& peak = q.budget.tightest().peak;
  Why out{{Text::why_vllm_activations, {}},
          {{"sampler", peak.sampler_bytes},
           {"forward", peak.forward_bytes},
           {"expert_workspaces", peak.workspace_bytes},
           {"encoder_outputs", peak.encoder_bytes},
           {"rest", peak.rest_bytes},
           {"max_num_batched_tokens", q.options.max_num_batched_tokens},
           {"max_num_seqs", q.options.max_num_seqs}},
          cite_all(q, "vllm/v1/worker/gpu_model_runner.py (profile_run)",
                   {"sampler_bytes_per_logit", "forward_ffn_copies", "forward_hidden_copies", "activation_rest_gib"})};
  if (peak.states_bytes > 0) out.values.emplace_back("recurrent_states", peak.states_bytes);
  return out;
}

Why vllm_graphs_why(const VllmQuestion& q) {
  const std::size_t at = q.budget.middle.tightest;
  const vllm::Stage& stage = q.budget.tightest().stage;
  return {measured(Text::why_vllm_graphs, q.budget.low.stages[at].graph_bytes, q.budget.high.stages[at].graph_bytes),
          {{"graphs", vllm::captured_graphs(q.options)},
           {"largest_batch", vllm::largest_capture(q.options)},
           {"layers", stage.last - stage.first}},
          cite_all(q, "", {"graph_base_gib", "graph_mib_per_layer_and_size"})};
}

Why vllm_fragmentation_why(const VllmQuestion& q) {
  const std::size_t at = q.budget.middle.tightest;
  return {measured(Text::why_vllm_fragmentation, q.budget.low.stages[at].fragmentation_bytes,
                   q.budget.high.stages[at].fragmentation_bytes),
          {},
          cite_all(q, "", {"fragmentation_gib"})};
}

Why vllm_non_torch_why(const VllmQuestion& q) {
  return {measured(Text::why_vllm_non_torch, q.budget.low.non_torch_bytes, q.budget.high.non_torch_bytes),
          {},
          cite_all(q, "", {"non_torch_gib"})};
}

Why vllm_context_why(const VllmQuestion& q) {
  return {measured(Text::why_vllm_context, q.budget.low.context_bytes, q.budget.high.context_bytes),
          {},
          cite_all(q, "", {"context_gib"})};
}

}  // namespace ullage::report
