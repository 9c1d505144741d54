#include <fmt/core.h>

#include <algorithm>

#include "engines/serving/arithmetic.h"
#include "engines/serving/configured.h"
#include "engines/sglang/options.h"

namespace ullage::engines::sglang {
namespace {

using serving::gib;

// What SGLang takes for models that do not say how long a sequence may be.
// Source: sglang/srt/utils/hf_transformers_utils.py (get_context_length).
constexpr std::int64_t kLengthOfTheUnlimited = 2048;

tl::unexpected<Error> refuse(std::string_view flag, std::string message) {
  return fail(ErrorCode::invalid_argument, std::string(flag), std::move(message));
}

tl::unexpected<Error> not_modelled(std::string_view flag, std::string message) {
  return fail(ErrorCode::unsupported, std::string(flag), std::move(message));
}

struct BackendPage {
  std::string_view backend;
  std::int64_t page_size;
};

// Source: sglang/srt/server_args.py (_handle_attention_backend_compatibility).
constexpr BackendPage kPages[] = {{"flashmla", 64},   {"cutlass_mla", 128}, {"trtllm_mla", 64},
                                  {"trtllm_mha", 64}, {"ascend", 128},      {"nsa", 64}};

bool any_kind(const model::Architecture& architecture, bool (*of)(const model::LayerKind&)) {
  return std::any_of(architecture.kinds.begin(), architecture.kinds.end(), of);
}

bool is_latent(const model::Architecture& architecture) {
  return any_kind(architecture, [](const model::LayerKind& kind) { return kind.attention.latent.kv_rank > 0; });
}

bool is_sparse(const model::Architecture& architecture) {
  return any_kind(architecture, [](const model::LayerKind& kind) { return kind.attention.indexer_dim > 0; });
}

bool is_multimodal(const Json& config) {
  if (!config.is_object()) return false;
  const auto has = [&](const char* key) { return config.contains(key); };
  return has("vision_config") || has("audio_config") || has("thinker_config");
}

class Resolver {
 public:
  Resolver(const Flags& flags, const Given& given) : flags_(flags), given_(given), o_(out_.options) {}

  Expected<Resolved> run() {
    return version()
        .and_then([&] { return types(); })
        .and_then([&] { return layout(); })
        .and_then([&] { return drafting(); })
        .and_then([&] { return batches(); })
        .and_then([&] { return pools(); })
        .and_then([&] { return fraction(); })
        .map([&] { return std::move(out_); });
  }

 private:
  Surroundings around() const { return surroundings(o_, given_.card); }

  Expected<void> version() {
    o_.family = given_.architecture.family;
    if (!flags_.engine_version) return {};
    if (flags_.engine_version->find(',') != std::string::npos)
      return not_modelled("--engine-version", "comparing releases is not in this version; name one");
    const auto read = parse_version(*flags_.engine_version, "--engine-version");
    if (!read) return tl::unexpected<Error>(read.error());
    o_.version = *read;
    out_.newer_than_known = *read > kNewest;
    return {};
  }

  bool has_bf16() const { return given_.card == nullptr || supports_bf16(*given_.card) != hardware::Support::no; }

  // "auto": the configuration's, where it is one of 16 bits; fp32 is halved.
  Expected<DType> model_type() const {
    const std::string word = flags_.dtype.value_or("auto");
    if (word == "auto") {
      const DType stored = serving::configured_dtype(given_.config).value_or(DType::bf16);
      if (stored == DType::f32) return DType::f16;
      return !is_half(stored) || (stored == DType::bf16 && !has_bf16()) ? DType::f16 : stored;
    }
    const auto read = parse_dtype(word == "float" ? "float32" : word);
    if (!read || !is_floating(*read) || *read == DType::f64)
      return refuse("--dtype",
                    fmt::format("'{}' is no type of weights; write auto, bfloat16, float16 or float32", word));
    if (*read == DType::bf16 && !has_bf16())
      return refuse("--dtype", fmt::format("{} has no bfloat16, which takes compute capability 8.0; use float16",
                                           given_.card->name));
    return *read;
  }

  Expected<void> types() {
    const auto dtype = model_type();
    if (!dtype) return tl::unexpected<Error>(dtype.error());
    o_.dtype = *dtype;
    o_.rotary_stretch = serving::configured_stretch(given_.config);
    const std::string word = flags_.kv_cache_dtype.value_or("auto");
    const auto read = word == "auto" ? std::optional(model::cache_type(*dtype)) : model::parse_cache_type(word);
    if (!read || read->block != 1)
      return not_modelled("--kv-cache-dtype", fmt::format("'{}' under SGLang is not in this version; known are auto, "
                                                          "bfloat16, fp8_e5m2 and fp8_e4m3",
                                                          word.substr(0, 40)));
    o_.kv_cache_dtype = *read;
    return {};
  }

  Expected<void> layout() {
    o_.tp = flags_.tp.value_or(1);
    o_.pp = flags_.pp.value_or(1);
    o_.dp = flags_.dp.value_or(1);
    o_.ep = flags_.ep.value_or(1);
    o_.enable_dp_attention = flags_.enable_dp_attention && o_.dp > 1;
    if (o_.enable_dp_attention && o_.tp % o_.dp != 0)
      return refuse("--dp", fmt::format("{} does not divide the {} ranks of --tp that share attention", o_.dp, o_.tp));
    if (o_.tp % o_.ep != 0)
      return refuse("--ep", fmt::format("{} does not divide the {} ranks of --tp that share experts", o_.ep, o_.tp));
    const model::Architecture& arch = given_.architecture;
    for (const model::LayerKind& kind : arch.kinds) {
      const std::int64_t heads = kind.attention.heads;
      if (kind.attention.kind == model::AttentionKind::none || heads % o_.attention_ranks() == 0) continue;
      return refuse("--tp", fmt::format("{} ranks do not divide the {} attention heads; SGLang refuses it",
                                        o_.attention_ranks(), heads));
    }
    if (o_.pp > arch.layer_count() - arch.encoder_layers)
      return refuse(
          "--pp", fmt::format("{} stages for {} layers; take fewer", o_.pp, arch.layer_count() - arch.encoder_layers));
    o_.kt_num_gpu_experts = flags_.kt_num_gpu_experts;
    o_.cpu_offload_bytes = gib(flags_.cpu_offload_gb.value_or(0));
    return {};
  }

  // Sizes of drafts that were not given are the release's choice by family: three steps for models whose own layers
  // draft. Source: sglang/srt/server_args.py (auto_choose_speculative_params).
  Expected<void> drafting() {
    if (!flags_.speculative_algorithm) return {};
    constexpr std::string_view kFlag = "--speculative-algorithm";
    std::string word = *flags_.speculative_algorithm;
    std::transform(word.begin(), word.end(), word.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
    if (word == "NGRAM") o_.drafting = Drafting::prompt;
    else if (word == "EAGLE" || word == "NEXTN") o_.drafting = Drafting::own_layers;
    else
      return not_modelled(kFlag, fmt::format("'{}' is not in this version; known are NEXTN and EAGLE, where the "
                                             "model's own layers draft, and NGRAM",
                                             word.substr(0, 40)));
    o_.speculative_num_steps = flags_.speculative_num_steps.value_or(3);
    o_.speculative_eagle_topk = flags_.speculative_eagle_topk.value_or(1);
    o_.speculative_num_draft_tokens = flags_.speculative_num_draft_tokens.value_or(o_.speculative_num_steps + 1);
    return {};
  }

  Expected<void> batches() {
    const model::Architecture& arch = given_.architecture;
    o_.context_length =
        flags_.context_length.value_or(arch.max_positions > 0 ? arch.max_positions : kLengthOfTheUnlimited);
    o_.max_prefill_tokens = flags_.max_prefill_tokens.value_or(count("max_prefill_tokens", around()));
    o_.chunked_prefill_size = flags_.chunked_prefill_size.value_or(count("chunked_prefill_size", around()));
    o_.cuda_graph_max_bs = flags_.cuda_graph_max_bs.value_or(count("cuda_graph_max_bs", around()));
    o_.disable_cuda_graph = flags_.disable_cuda_graph;
    o_.disable_radix_cache = flags_.disable_radix_cache;
    o_.max_running_requests = flags_.max_running_requests;
    if (!o_.max_running_requests && o_.drafting != Drafting::none)
      o_.max_running_requests = count("requests_drafting", around());
    o_.piecewise_graphs = figure("piecewise_graphs", around()) > 0 && !o_.disable_cuda_graph &&
                          !is_multimodal(given_.config) && !o_.enable_dp_attention && o_.pp == 1 &&
                          o_.cpu_offload_bytes == 0;
    return page();
  }

  Expected<void> page() {
    o_.attention_backend = flags_.attention_backend.value_or("");
    o_.page_size = flags_.page_size.value_or(count("page_size", around()));
    if (is_sparse(given_.architecture)) o_.page_size = 64;
    for (const BackendPage& known : kPages) {
      if (o_.attention_backend == known.backend && o_.page_size < known.page_size) o_.page_size = known.page_size;
    }
    if (o_.chunked_prefill_size > 0 && o_.chunked_prefill_size % o_.page_size != 0)
      return refuse("--chunked-prefill-size", fmt::format("{} is no multiple of the page size {}; SGLang refuses it",
                                                          o_.chunked_prefill_size, o_.page_size));
    return {};
  }

  Expected<void> pools() {
    Surroundings of_model = around();
    o_.window_pool = figure("window_pool", of_model) > 0;
    o_.swa_full_tokens_ratio = flags_.swa_full_tokens_ratio.value_or(figure("swa_full_tokens_ratio", of_model));
    if (!(o_.swa_full_tokens_ratio > 0) || o_.swa_full_tokens_ratio > 1)
      return refuse("--swa-full-tokens-ratio",
                    fmt::format("{} is not more than 0 and at most 1; SGLang refuses it", o_.swa_full_tokens_ratio));
    o_.mamba_full_memory_ratio = flags_.mamba_full_memory_ratio.value_or(figure("mamba_full_memory_ratio", of_model));
    if (!(o_.mamba_full_memory_ratio > 0))
      return refuse("--mamba-full-memory-ratio", fmt::format("{} is not more than 0", o_.mamba_full_memory_ratio));
    o_.max_mamba_cache_size = flags_.max_mamba_cache_size;
    o_.max_total_tokens = flags_.max_total_tokens;
    return {};
  }

  Expected<void> fraction() {
    const bool automatic = !flags_.mem_fraction_static;
    double value =
        automatic ? automatic_fraction(o_, given_.card, is_latent(given_.architecture)) : *flags_.mem_fraction_static;
    // Before 0.4.9 what was given was reduced, too.
    if (automatic || o_.version < kReserves) value *= multimodal_factor(o_, given_.config);
    if (automatic && value <= 0) value = 0;
    if ((!automatic && !(value > 0)) || value >= 1)
      return refuse("--mem-fraction-static", fmt::format("{} is no share of the card; expected more than 0 and less "
                                                         "than 1",
                                                         value));
    o_.mem_fraction_static = value;
    // Only now, and what was given, too. Source: sglang/srt/server_args.py (_handle_data_parallelism).
    if (o_.enable_dp_attention && o_.chunked_prefill_size > 0)
      o_.chunked_prefill_size = std::max<std::int64_t>(1, o_.chunked_prefill_size / o_.dp);
    return {};
  }

  const Flags& flags_;
  const Given& given_;
  Resolved out_;
  Options& o_;
};

}  // namespace

Expected<Resolved> resolve(const Flags& flags, const Given& given) { return Resolver(flags, given).run(); }

Surroundings surroundings(const Options& options, const hardware::Gpu* card, Bound bound) {
  return {options.version, card, options.tp, options.pp, bound, options.family};
}

serving::Shares shares_of(const Options& o) {
  serving::Shares out;
  out.dtype = o.dtype;
  out.rotary_dtype = DType::f32;
  out.vocabulary = out.ffn = o.tp;
  out.heads = out.embedding = o.attention_ranks();
  out.experts = o.ep;
  out.expert_ffn = o.tp / o.ep;
  out.most_experts = o.kt_num_gpu_experts;
  out.rotary_stretch = o.rotary_stretch;
  out.cpu_offload_bytes = o.cpu_offload_bytes;
  out.draft_layers = o.draft_layers();
  out.absorbs_latent = true;
  return out;
}

}  // namespace ullage::engines::sglang
