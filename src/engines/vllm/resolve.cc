#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "engines/serving/arithmetic.h"
#include "engines/serving/configured.h"
#include "engines/vllm/checks.h"
#include "engines/vllm/options.h"
#include "engines/vllm/rules.h"

namespace ullage::engines::vllm {
namespace {

using serving::gib;

// What vLLM takes for models that do not say how long a sequence may be.
// Source: vllm/config/model.py (_get_and_verify_max_len).
constexpr std::int64_t kLengthOfTheUnlimited = 2048;
constexpr std::int64_t kLeastBatchedTokens = 2048;
constexpr std::int64_t kDefaultLoraRank = 16;

tl::unexpected<Error> refuse(std::string_view flag, std::string message) {
  return fail(ErrorCode::invalid_argument, std::string(flag), std::move(message));
}

tl::unexpected<Error> not_modelled(std::string_view flag, std::string message) {
  return fail(ErrorCode::unsupported, std::string(flag), std::move(message));
}

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

bool keeps_states(const model::Architecture& architecture) {
  return std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                     [](const model::LayerKind& kind) { return kind.recurrent.has_value(); });
}

class Resolver {
 public:
  Resolver(const Flags& flags, const Given& given) : flags_(flags), given_(given) {}

  Expected<Resolved> run() {
    return version()
        .and_then([&] { return engine(); })
        .and_then([&] { return types(); })
        .and_then([&] { return layout(); })
        .and_then([&] { return length(); })
        .and_then([&] { return batches(); })
        .and_then([&] { return budget(); })
        .and_then([&] { return extras(); })
        .map([&] { return std::move(out_); });
  }

 private:
  Surroundings around() const {
    return {out_.options.version,
            given_.card,
            out_.options.tensor_parallel_size,
            out_.options.pipeline_parallel_size,
            Bound::middle,
            given_.architecture.family};
  }

  Expected<void> version() {
    if (!flags_.engine_version) return {};
    if (flags_.engine_version->find(',') != std::string::npos)
      return not_modelled("--engine-version", "comparing releases is not in this version; name one");
    const auto read = parse_version(*flags_.engine_version, "--engine-version");
    if (!read) return tl::unexpected<Error>(read.error());
    if (*read < kRefused) {
      return not_modelled("--engine-version", fmt::format("{} is not in this version, whose rules begin at {}",
                                                          to_string(*read), to_string(kOldest)));
    }
    out_.options.version = out_.options.release = *read;
    out_.newer_than_known = *read > kNewest;
    out_.older_than_known = *read < kOldest;
    return {};
  }

  std::optional<std::string> env(std::string_view name) const {
    for (const auto& [known, value] : flags_.env) {
      if (known == name) return value;
    }
    return std::nullopt;
  }

  static bool is_on(const std::string& value) { return value != "0" && value != "false" && value != "False"; }

  bool env_on(std::string_view name) const {
    const std::optional<std::string> value = env(name);
    return value && is_on(*value);
  }

  // Releases with two engines take the first for some models and cards: by the rules of its last release.
  Expected<void> engine() {
    Options& o = out_.options;
    const std::optional<std::string> asked = env("VLLM_USE_V1");
    o.first_engine = first_engine(o.release, given_.architecture, given_.card, asked && !is_on(*asked));
    if (o.first_engine != FirstEngine::no && o.release > kLastV0) o.version = kLastV0;
    o.spreads_latents = o.release < kLatentCache || env_on("VLLM_MLA_DISABLE");
    return {};
  }

  bool has_bf16() const { return given_.card == nullptr || supports_bf16(*given_.card) != hardware::Support::no; }

  // "auto": the configuration's, where it is one of 16 bits.
  Expected<DType> model_type() const {
    const std::string word = flags_.dtype.value_or("auto");
    if (word == "auto") {
      const std::optional<DType> stored = serving::configured_dtype(given_.config);
      const DType wanted = stored && is_half(*stored) ? *stored : DType::bf16;
      return wanted == DType::bf16 && !has_bf16() ? DType::f16 : wanted;
    }
    const auto read = parse_dtype(word == "float" ? "float32" : word);
    if (!read || !is_floating(*read) || *read == DType::f64)
      return refuse("--dtype",
                    fmt::format("'{}' is no type of weights; write auto, bfloat16, float16 or float32", word));
    if (*read == DType::bf16 && !has_bf16()) {
      return refuse("--dtype", fmt::format("{} has no bfloat16, which takes compute capability 8.0; vLLM refuses it, "
                                           "use float16",
                                           given_.card->name));
    }
    return *read;
  }

  Expected<void> types() {
    const auto dtype = model_type();
    if (!dtype) return tl::unexpected<Error>(dtype.error());
    out_.options.dtype = *dtype;
    out_.options.rotary_stretch = serving::configured_stretch(given_.config);
    const std::string word = flags_.kv_cache_dtype.value_or("auto");
    if (word == "auto") {
      out_.options.kv_cache_dtype = model::cache_type(*dtype);
      return {};
    }
    const auto read = model::parse_cache_type(word == "fp8_ds_mla" ? "fp8" : word);
    if (!read || read->block != 1) {
      return not_modelled("--kv-cache-dtype", fmt::format("'{}' under vLLM is not in this version; known are auto, "
                                                          "bfloat16, float16, float32, fp8, fp8_e4m3, fp8_e5m2, int8",
                                                          word.substr(0, 40)));
    }
    out_.options.kv_cache_dtype = *read;
    return {};
  }

  Expected<void> layout() {
    Options& o = out_.options;
    o.tensor_parallel_size = flags_.tensor_parallel_size.value_or(1);
    o.pipeline_parallel_size = flags_.pipeline_parallel_size.value_or(1);
    o.data_parallel_size = flags_.data_parallel_size.value_or(1);
    o.decode_context_parallel_size = flags_.decode_context_parallel_size.value_or(1);
    o.enable_expert_parallel = flags_.enable_expert_parallel;
    const model::Architecture& arch = given_.architecture;
    for (const model::LayerKind& kind : arch.kinds) {
      const std::int64_t heads = kind.attention.heads;
      if (kind.attention.kind == model::AttentionKind::none || heads % o.tensor_parallel_size == 0) continue;
      return refuse("--tensor-parallel-size", fmt::format("{} does not divide the {} attention heads; vLLM refuses it",
                                                          o.tensor_parallel_size, heads));
    }
    if (o.pipeline_parallel_size > arch.layer_count()) {
      return refuse("--pipeline-parallel-size",
                    fmt::format("{} stages for {} layers; take fewer", o.pipeline_parallel_size, arch.layer_count()));
    }
    return context_parallel();
  }

  // It shares a sequence out over GPUs that would otherwise hold copies of the same heads of keys and values.
  // Source: vllm/config/model.py (verify_with_parallel_config).
  Expected<void> context_parallel() const {
    constexpr std::string_view kFlag = "--decode-context-parallel-size";
    const std::int64_t tensor = out_.options.tensor_parallel_size;
    const std::int64_t ranks = out_.options.decode_context_parallel_size;
    if (ranks == 1) return {};
    if (tensor % ranks != 0)
      return refuse(kFlag, fmt::format("{} does not divide the tensor-parallel size {}", ranks, tensor));
    for (const model::LayerKind& kind : given_.architecture.kinds) {
      const std::int64_t heads = kind.attention.kv_heads;
      if (heads <= 0 || kind.attention.latent.kv_rank > 0) continue;
      if (tensor > heads && ranks <= tensor / heads) continue;
      return refuse(kFlag, fmt::format("{} shares copies of the {} heads of keys and values, of which tensor-parallel "
                                       "size {} makes {}; vLLM refuses it",
                                       ranks, heads, tensor, std::max<std::int64_t>(1, tensor / heads)));
    }
    return {};
  }

  // The model's own limit, stretched as its configuration says.
  std::int64_t model_length() const {
    const std::int64_t derived = derived_length(given_.architecture, given_.config);
    return derived > 0 ? derived : kLengthOfTheUnlimited;
  }

  Expected<void> length() {
    Options& o = out_.options;
    o.max_model_len = flags_.max_model_len.value_or(model_length());
    const std::int64_t block = whole(rule("block_size", around()).value);
    o.block_size = flags_.block_size.value_or(block);
    if (flags_.enable_prefix_caching && keeps_states(given_.architecture)) o.state_caching = StateCaching::aligned;
    return check_length(given_.architecture, given_.config, o.max_model_len, env_on("VLLM_ALLOW_LONG_MAX_MODEL_LEN"));
  }

  // V0 without chunked prefill puts whole prompts in.
  std::int64_t default_batched_tokens() {
    Options& o = out_.options;
    const std::int64_t in_chunks = whole(rule("max_num_batched_tokens", around()).value);
    if (is_v1(o.version)) return in_chunks;
    const bool chunked = o.max_model_len > whole(rule("chunked_prefill_from_len", around()).value);
    o.profiles_sampler = !chunked;
    return chunked ? in_chunks : std::max(o.max_model_len, kLeastBatchedTokens);
  }

  Expected<void> batches() {
    Options& o = out_.options;
    const std::int64_t seqs = whole(rule("max_num_seqs", around()).value);
    const std::int64_t tokens = default_batched_tokens();
    o.max_num_batched_tokens = flags_.max_num_batched_tokens.value_or(tokens);
    o.max_num_seqs = flags_.max_num_seqs.value_or(std::min(seqs, o.max_num_batched_tokens));
    if (o.max_num_batched_tokens >= o.max_num_seqs) return {};
    if (!flags_.max_num_batched_tokens) {
      o.max_num_batched_tokens = o.max_num_seqs;
      return {};
    }
    return refuse("--max-num-batched-tokens",
                  fmt::format("vLLM refuses to start: max_num_batched_tokens ({}) must be greater than or equal to "
                              "max_num_seqs ({}); raise it or lower --max-num-seqs",
                              o.max_num_batched_tokens, o.max_num_seqs));
  }

  Expected<void> budget() {
    Options& o = out_.options;
    o.gpu_memory_utilization = flags_.gpu_memory_utilization.value_or(rule("gpu_memory_utilization", around()).value);
    if (!(o.gpu_memory_utilization > 0) || o.gpu_memory_utilization > 1) {
      return refuse(
          "--gpu-memory-utilization",
          fmt::format("{} is no share of the card; expected more than 0 and at most 1", o.gpu_memory_utilization));
    }
    o.kv_cache_memory_bytes = flags_.kv_cache_memory_bytes;
    o.enforce_eager = flags_.enforce_eager;
    o.cpu_offload_bytes = gib(flags_.cpu_offload_gb.value_or(0));
    return {};
  }

  Expected<void> extras() {
    return capture_sizes().and_then([&] { return speculation(); }).and_then([&] { return images(); }).map([&] {
      adapters();
      environment();
    });
  }

  Expected<void> capture_sizes() {
    out_.options.largest_capture = whole(rule("largest_capture", around()).value);
    if (!flags_.cudagraph_capture_sizes) return {};
    return read_capture_sizes(*flags_.cudagraph_capture_sizes, out_.options.max_num_batched_tokens)
        .map([&](std::vector<std::int64_t> sizes) { out_.options.cudagraph_capture_sizes = std::move(sizes); });
  }

  void adapters() {
    if (flags_.enable_lora) {
      out_.options.lora = {flags_.max_loras.value_or(1), flags_.max_lora_rank.value_or(kDefaultLoraRank)};
      return;
    }
    if (flags_.max_loras) out_.idle_flags.emplace_back("--max-loras", "--enable-lora");
    if (flags_.max_lora_rank) out_.idle_flags.emplace_back("--max-lora-rank", "--enable-lora");
  }

  // Limits of nothing keep the encoder out of the profile run.
  Expected<void> images() {
    const bool sees = given_.config.is_object() && given_.config.contains("vision_config");
    out_.options.encodes_images = sees;
    if (!flags_.limit_mm_per_prompt) return {};
    constexpr std::string_view kFlag = "--limit-mm-per-prompt";
    const auto json = parse_json(*flags_.limit_mm_per_prompt, kFlag);
    if (!json) return tl::unexpected<Error>(json.error());
    if (!json->is_object()) return refuse(kFlag, R"(is no JSON object; write {"image": 0})");
    bool any = false;
    for (const Json& limit : *json) any = any || !limit.is_number_integer() || limit.get<std::int64_t>() != 0;
    out_.options.encodes_images = sees && any;
    return {};
  }

  // Layers that came with the model draft (MTP), or nothing but the prompt does (ngram).
  Expected<void> speculation() {
    if (!flags_.speculative_config) return {};
    constexpr std::string_view kFlag = "--speculative-config";
    const auto json = parse_json(*flags_.speculative_config, kFlag);
    if (!json) return tl::unexpected<Error>(json.error());
    if (!json->is_object())
      return refuse(kFlag, R"(is no JSON object; write {"method": "mtp", "num_speculative_tokens": 2})");
    const JsonObject config(*json, std::string(kFlag));
    const auto method = config.string("method", "");
    if (!method) return tl::unexpected<Error>(method.error());
    const auto tokens = config.integer("num_speculative_tokens", 1, 1, 256);
    if (!tokens) return tl::unexpected<Error>(tokens.error());
    const bool mtp = method->ends_with("mtp");
    if (!mtp && *method != "ngram") {
      return not_modelled(kFlag, fmt::format("drafting by '{}' is not in this version; known are mtp and ngram",
                                             method->substr(0, 40)));
    }
    if (mtp && !has_drafting_layers(given_.config)) {
      return refuse(kFlag, fmt::format("vLLM refuses to start: Unsupported speculative method: '{}': the model's "
                                       "configuration names no layers that draft (num_nextn_predict_layers); use ngram",
                                       method->substr(0, 40)));
    }
    out_.options.speculative_tokens = *tokens;
    out_.options.draft_layers = mtp ? 1 : 0;
    return {};
  }

  static bool is_read(std::string_view name) {
    return name == "VLLM_USE_V1" || name == "VLLM_MLA_DISABLE" || name == "VLLM_ALLOW_LONG_MAX_MODEL_LEN";
  }

  void environment() {
    for (const auto& [name, value] : flags_.env) {
      const bool on = is_on(value);
      if (name == "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS") out_.options.graphs_in_budget = on;
      else if (name == "VLLM_USE_FLASHINFER_SAMPLER") out_.options.flashinfer_sampler = on;
      else if (!is_read(name)) out_.ignored_env.push_back(name);
    }
  }

  const Flags& flags_;
  const Given& given_;
  Resolved out_;
};

}  // namespace

Expected<Resolved> resolve(const Flags& flags, const Given& given) { return Resolver(flags, given).run(); }

}  // namespace ullage::engines::vllm
