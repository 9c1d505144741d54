#include "cli/serve_sglang_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/serve_checks.h"

namespace ullage::cli {
namespace {

namespace sglang = engines::sglang;

constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostPage = 1 << 16;
constexpr std::int64_t kMostRequests = 1 << 20;
constexpr std::int64_t kMostDrafted = 256;
constexpr std::int64_t kMostExperts = 1 << 16;
constexpr double kMostOffloadGiB = 1 << 20;

struct CountOption {
  std::string_view name;
  std::optional<std::int64_t> sglang::Flags::*flag;
  std::int64_t low;
  std::int64_t high;
};

constexpr CountOption kCounts[] = {
    {"--tp", &sglang::Flags::tp, 1, kMostRanks},
    {"--pp", &sglang::Flags::pp, 1, kMostRanks},
    {"--dp", &sglang::Flags::dp, 1, kMostRanks},
    {"--ep", &sglang::Flags::ep, 1, kMostRanks},
    {"--context-length", &sglang::Flags::context_length, 1, kMostTokens},
    {"--chunked-prefill-size", &sglang::Flags::chunked_prefill_size, -1, kMostTokens},
    {"--max-prefill-tokens", &sglang::Flags::max_prefill_tokens, 1, kMostTokens},
    {"--max-running-requests", &sglang::Flags::max_running_requests, 1, kMostRequests},
    {"--max-total-tokens", &sglang::Flags::max_total_tokens, 1, kMostTokens},
    {"--cuda-graph-max-bs", &sglang::Flags::cuda_graph_max_bs, 1, kMostRequests},
    {"--page-size", &sglang::Flags::page_size, 1, kMostPage},
    {"--kt-num-gpu-experts", &sglang::Flags::kt_num_gpu_experts, 0, kMostExperts},
    {"--max-mamba-cache-size", &sglang::Flags::max_mamba_cache_size, 1, kMostRequests},
    {"--speculative-num-steps", &sglang::Flags::speculative_num_steps, 1, kMostDrafted},
    {"--speculative-eagle-topk", &sglang::Flags::speculative_eagle_topk, 1, kMostDrafted},
    {"--speculative-num-draft-tokens", &sglang::Flags::speculative_num_draft_tokens, 1, kMostDrafted},
};

struct NumberOption {
  std::string_view name;
  std::optional<double> sglang::Flags::*flag;
};

constexpr NumberOption kNumbers[] = {
    {"--mem-fraction-static", &sglang::Flags::mem_fraction_static},
    {"--swa-full-tokens-ratio", &sglang::Flags::swa_full_tokens_ratio},
    {"--mamba-full-memory-ratio", &sglang::Flags::mamba_full_memory_ratio},
    {"--cpu-offload-gb", &sglang::Flags::cpu_offload_gb},
};

}  // namespace

Expected<sglang::Flags> sglang_flags(const Arguments& arguments) {
  sglang::Flags out;
  for (const CountOption& option : kCounts) {
    if (!arguments.has(option.name)) continue;
    const auto value = arguments.integer(option.name, 0, option.low, option.high);
    if (!value) return tl::unexpected<Error>(value.error());
    out.*option.flag = *value;
  }
  for (const NumberOption& option : kNumbers) {
    if (!arguments.has(option.name)) continue;
    const auto value = arguments.number(option.name, 0);
    if (!value) return tl::unexpected<Error>(value.error());
    out.*option.flag = std::min(*value, kMostOffloadGiB);
  }
  // 0 is what -1 says, too.
  if (out.chunked_prefill_size == 0) out.chunked_prefill_size = -1;
  out.engine_version = given_text(arguments, "--engine-version");
  out.dtype = given_text(arguments, "--dtype");
  out.kv_cache_dtype = given_text(arguments, "--kv-cache-dtype");
  out.attention_backend = given_text(arguments, "--attention-backend");
  out.speculative_algorithm = given_text(arguments, "--speculative-algorithm");
  out.enable_dp_attention = arguments.has("--enable-dp-attention");
  out.disable_radix_cache = arguments.has("--disable-radix-cache");
  out.disable_cuda_graph = arguments.has("--disable-cuda-graph");
  return out;
}

std::vector<report::Setting> sglang_settings(const Arguments& a, const sglang::Options& o, const sglang::Budget& budget,
                                             std::int64_t gpus) {
  std::vector<report::Setting> out{{"engine", std::string("sglang")},
                                   {"engine_version", sglang::to_string(o.version)},
                                   {"gpus", gpus},
                                   {"dtype", std::string(ullage::name_of(o.dtype))},
                                   {"kv_cache_dtype", std::string(o.kv_cache_dtype.name)},
                                   {"context_length", o.context_length},
                                   {"mem_fraction_static", o.mem_fraction_static},
                                   {"chunked_prefill_size", o.chunked_prefill_size},
                                   {"max_running_requests", budget.middle.requests.running},
                                   {"cuda_graph_max_bs", o.disable_cuda_graph ? 0 : o.cuda_graph_max_bs},
                                   {"page_size", o.page_size},
                                   {"tp", o.tp},
                                   {"pp", o.pp},
                                   {"dp", o.dp},
                                   {"ep", o.ep}};
  if (a.has("--quantization")) out.push_back({"quantization", a.text("--quantization")});
  if (o.max_total_tokens) out.push_back({"max_total_tokens", *o.max_total_tokens});
  if (o.enable_dp_attention) out.push_back({"enable_dp_attention", true});
  if (!o.attention_backend.empty()) out.push_back({"attention_backend", o.attention_backend});
  if (a.has("--speculative-algorithm")) {
    out.push_back({"speculative_algorithm", a.text("--speculative-algorithm")});
    out.push_back({"speculative_num_draft_tokens", o.speculative_num_draft_tokens});
  }
  if (o.kt_num_gpu_experts) out.push_back({"kt_num_gpu_experts", *o.kt_num_gpu_experts});
  if (o.window_pool) out.push_back({"swa_full_tokens_ratio", o.swa_full_tokens_ratio});
  if (budget.middle.at().plan.states() > 0) out.push_back({"max_mamba_cache_size", budget.middle.at().sizes.states});
  if (o.disable_radix_cache) out.push_back({"disable_radix_cache", true});
  if (o.cpu_offload_bytes > 0) out.push_back({"cpu_offload_bytes", o.cpu_offload_bytes});
  return out;
}

std::vector<report::Message> sglang_defaults(const Arguments& a, const sglang::Options& o) {
  const std::pair<std::string_view, std::string> defaults[] = {
      {"--engine-version", sglang::to_string(o.version)},
      {"--dtype", std::string(ullage::name_of(o.dtype))},
      {"--context-length", std::to_string(o.context_length)},
      {"--mem-fraction-static", fmt::format("{:.4g}", o.mem_fraction_static)},
      {"--chunked-prefill-size", std::to_string(o.chunked_prefill_size)},
      {"--cuda-graph-max-bs", std::to_string(o.cuda_graph_max_bs)},
      {"--kv-cache-dtype", std::string(o.kv_cache_dtype.name)},
      {"--page-size", std::to_string(o.page_size)}};
  return defaults_told(a, defaults);
}

}  // namespace ullage::cli
