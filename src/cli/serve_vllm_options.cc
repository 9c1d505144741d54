#include "cli/serve_vllm_options.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::cli {
namespace {

namespace vllm = engines::vllm;

constexpr std::int64_t kMostSequences = 1 << 20;
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostBlock = 1 << 16;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr double kMostOffloadGiB = 1 << 20;

struct CountOption {
  std::string_view name;
  std::optional<std::int64_t> vllm::Flags::*flag;
  std::int64_t low;
  std::int64_t high;
};

constexpr CountOption kCounts[] = {
    {"--block-size", &vllm::Flags::block_size, 1, kMostBlock},
    {"--max-num-seqs", &vllm::Flags::max_num_seqs, 1, kMostSequences},
    {"--max-num-batched-tokens", &vllm::Flags::max_num_batched_tokens, 1, kMostTokens},
    {"--kv-cache-memory-bytes", &vllm::Flags::kv_cache_memory_bytes, 1, kMostBytes},
    {"--tensor-parallel-size", &vllm::Flags::tensor_parallel_size, 1, kMostRanks},
    {"--pipeline-parallel-size", &vllm::Flags::pipeline_parallel_size, 1, kMostRanks},
    {"--data-parallel-size", &vllm::Flags::data_parallel_size, 1, kMostRanks},
    {"--decode-context-parallel-size", &vllm::Flags::decode_context_parallel_size, 1, kMostRanks},
    {"--max-loras", &vllm::Flags::max_loras, 1, kMostRanks},
    {"--max-lora-rank", &vllm::Flags::max_lora_rank, 1, kMostRanks},
};

Expected<void> read_counts(const Arguments& arguments, vllm::Flags& flags) {
  for (const CountOption& option : kCounts) {
    const auto value = suffixed_count(arguments, option.name, option.low, option.high);
    if (!value) return tl::unexpected<Error>(value.error());
    flags.*option.flag = *value;
  }
  if (arguments.text("--max-model-len") == "max") return {};
  const auto length = suffixed_count(arguments, "--max-model-len", 1, kMostTokens);
  if (!length) return tl::unexpected<Error>(length.error());
  flags.max_model_len = *length;
  return {};
}

Expected<void> read_numbers(const Arguments& arguments, vllm::Flags& flags) {
  const auto share = arguments.number("--gpu-memory-utilization", 0);
  if (!share) return tl::unexpected<Error>(share.error());
  if (arguments.has("--gpu-memory-utilization")) flags.gpu_memory_utilization = *share;
  const auto offload = arguments.number("--cpu-offload-gb", 0);
  if (!offload) return tl::unexpected<Error>(offload.error());
  if (arguments.has("--cpu-offload-gb")) flags.cpu_offload_gb = std::min(*offload, kMostOffloadGiB);
  return {};
}

Expected<void> read_env(const Arguments& arguments, vllm::Flags& flags) {
  for (const std::string& text : arguments.all("--env")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::invalid_argument, "--env", fmt::format("'{}' is not NAME=VALUE", text.substr(0, 60)));
    std::string value = text.substr(equals + 1);
    flags.env.emplace_back(text.substr(0, equals), std::move(value));
  }
  return {};
}

}  // namespace

Expected<vllm::Flags> vllm_flags(const Arguments& arguments) {
  vllm::Flags out;
  if (auto read = read_counts(arguments, out); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_numbers(arguments, out); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_env(arguments, out); !read) return tl::unexpected<Error>(read.error());
  out.engine_version = given_text(arguments, "--engine-version");
  out.dtype = given_text(arguments, "--dtype");
  out.kv_cache_dtype = given_text(arguments, "--kv-cache-dtype");
  out.cudagraph_capture_sizes = given_text(arguments, "--cudagraph-capture-sizes");
  out.limit_mm_per_prompt = given_text(arguments, "--limit-mm-per-prompt");
  out.speculative_config = given_text(arguments, "--speculative-config");
  out.enable_expert_parallel = arguments.has("--enable-expert-parallel");
  out.enable_prefix_caching = arguments.has("--enable-prefix-caching");
  out.enforce_eager = arguments.has("--enforce-eager");
  out.enable_lora = arguments.has("--enable-lora");
  return out;
}

// Scales are quantised themselves, and from some release on taken apart while they are loaded.
// Source: vllm/model_executor/model_loader/bitsandbytes_loader.py (_dequantize_dq).
ScalesOfNf4 vllm_scales(const vllm::Options& options) {
  constexpr vllm::Version kTakesScalesApart{0, 9, 0};
  return options.release >= kTakesScalesApart ? ScalesOfNf4::taken_apart : ScalesOfNf4::as_stored;
}

std::vector<report::Setting> vllm_settings(const Arguments& a, const vllm::Options& o, std::int64_t gpus) {
  std::vector<report::Setting> out{{"engine", std::string("vllm")},
                                   {"engine_version", vllm::to_string(o.release)},
                                   {"gpus", gpus},
                                   {"dtype", std::string(ullage::name_of(o.dtype))},
                                   {"kv_cache_dtype", std::string(o.kv_cache_dtype.name)},
                                   {"max_model_len", o.max_model_len},
                                   {"block_size", o.block_size},
                                   {"max_num_seqs", o.max_num_seqs},
                                   {"max_num_batched_tokens", o.max_num_batched_tokens},
                                   {"gpu_memory_utilization", o.gpu_memory_utilization},
                                   {"tensor_parallel_size", o.tensor_parallel_size},
                                   {"pipeline_parallel_size", o.pipeline_parallel_size},
                                   {"data_parallel_size", o.data_parallel_size},
                                   {"enforce_eager", o.enforce_eager}};
  if (a.has("--quantization")) out.push_back({"quantization", a.text("--quantization")});
  if (o.kv_cache_memory_bytes) out.push_back({"kv_cache_memory_bytes", *o.kv_cache_memory_bytes});
  if (o.decode_context_parallel_size > 1)
    out.push_back({"decode_context_parallel_size", o.decode_context_parallel_size});
  if (o.enable_expert_parallel) out.push_back({"enable_expert_parallel", true});
  if (a.has("--enable-prefix-caching")) out.push_back({"enable_prefix_caching", true});
  if (o.speculative_tokens > 0) out.push_back({"num_speculative_tokens", o.speculative_tokens});
  if (o.lora.slots > 0) {
    out.push_back({"max_loras", o.lora.slots});
    out.push_back({"max_lora_rank", o.lora.rank});
  }
  if (o.cpu_offload_bytes > 0) out.push_back({"cpu_offload_bytes", o.cpu_offload_bytes});
  return out;
}

std::vector<report::Message> vllm_defaults(const Arguments& a, const vllm::Options& o) {
  const std::pair<std::string_view, std::string> defaults[] = {
      {"--engine-version", vllm::to_string(o.release)},
      {"--dtype", std::string(ullage::name_of(o.dtype))},
      {"--max-model-len", std::to_string(o.max_model_len)},
      {"--gpu-memory-utilization", fmt::format("{:g}", o.gpu_memory_utilization)},
      {"--max-num-batched-tokens", std::to_string(o.max_num_batched_tokens)},
      {"--max-num-seqs", std::to_string(o.max_num_seqs)},
      {"--kv-cache-dtype", std::string(o.kv_cache_dtype.name)},
      {"--block-size", std::to_string(o.block_size)}};
  return defaults_told(a, defaults);
}

}  // namespace ullage::cli
