#include "cli/serve_budget_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "engines/budget/rules.h"

namespace ullage::cli {
namespace {

namespace budget = engines::budget;
using budget::Engine;
using budget::Options;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostBlock = 1 << 16;

// An engine's own flag for a size, and where its default stands.
struct Size {
  Engine engine;
  std::string_view flag;
  std::int64_t Options::*field;
  std::string_view item;  // of the rules; empty: one
  std::int64_t most;
};

constexpr Size kSizes[] = {
    {Engine::tensorrt_llm, "--tp", &Options::tensor_parallel, "", kMostRanks},
    {Engine::tensorrt_llm, "--pp", &Options::pipeline_parallel, "", kMostRanks},
    {Engine::tensorrt_llm, "--max_batch_size", &Options::max_batch, "max_batch", kMostBatch},
    {Engine::tensorrt_llm, "--max_input_len", &Options::input_tokens, "max_input", kMostTokens},
    {Engine::tensorrt_llm, "--max_output_len", &Options::output_tokens, "max_output", kMostTokens},
    {Engine::tensorrt_llm, "--max_num_tokens", &Options::prefill_tokens, "prefill_tokens", kMostTokens},
    {Engine::tensorrt_llm, "--max_beam_width", &Options::beams, "", 1024},
    {Engine::tensorrt_llm, "--tokens_per_block", &Options::block_size, "block_size", kMostBlock},
    {Engine::mindie, "--world-size", &Options::tensor_parallel, "", kMostRanks},
    {Engine::mindie, "--max-seq-len", &Options::longest, "longest", kMostTokens},
    {Engine::mindie, "--max-input-token-len", &Options::input_tokens, "max_input", kMostTokens},
    {Engine::mindie, "--max-iter-times", &Options::output_tokens, "max_output", kMostTokens},
    {Engine::mindie, "--cache-block-size", &Options::block_size, "block_size", 128},
    {Engine::mindie, "", &Options::prefill_tokens, "prefill_tokens", kMostTokens},
    {Engine::mindie, "", &Options::max_batch, "max_batch", kMostBatch},
    {Engine::lmdeploy, "--tp", &Options::tensor_parallel, "", kMostRanks},
    {Engine::lmdeploy, "--max-batch-size", &Options::max_batch, "max_batch", kMostBatch},
    {Engine::lmdeploy, "--cache-block-seq-len", &Options::block_size, "block_size", kMostBlock},
    {Engine::tgi, "--num-shard", &Options::tensor_parallel, "", kMostRanks},
    {Engine::tgi, "--max-input-tokens", &Options::input_tokens, "max_input", kMostTokens},
    {Engine::tgi, "--max-batch-prefill-tokens", &Options::prefill_tokens, "prefill_tokens", kMostTokens},
    {Engine::tgi, "", &Options::block_size, "block_size", kMostBlock},
};

struct Fraction {
  Engine engine;
  std::string_view flag;
};

constexpr Fraction kFractions[] = {{Engine::tensorrt_llm, "--kv_cache_free_gpu_mem_fraction"},
                                   {Engine::lmdeploy, "--cache-max-entry-count"},
                                   {Engine::tgi, "--cuda-memory-fraction"}};

tl::unexpected<Error> refuse(std::string_view flag, std::string message) {
  return fail(ErrorCode::invalid_argument, std::string(flag), std::move(message));
}

class Reader {
 public:
  Reader(const Arguments& arguments, const LoadedModel& loaded, const hardware::Gpu* card)
      : arguments_(arguments), architecture_(loaded.architecture), card_(card) {}

  Expected<Options> read() {
    out_.engine = *budget::engine_named(arguments_.text("--engine"));
    return version()
        .and_then([&] { return sizes(); })
        .and_then([&] { return types(); })
        .and_then([&] { return fraction(); })
        .and_then([&] { return lengths(); })
        .and_then([&] { return layout(); })
        .map([&] { return out_; });
  }

 private:
  std::int64_t default_of(std::string_view item) const {
    return static_cast<std::int64_t>(budget::rule(out_, item, card_).value);
  }

  Expected<void> version() {
    out_.version = budget::newest(out_.engine);
    if (!arguments_.has("--engine-version")) return {};
    return budget::parse_version(out_.engine, arguments_.text("--engine-version"), "--engine-version")
        .map([&](budget::Version read) { out_.version = read; });
  }

  Expected<void> sizes() {
    for (const Size& size : kSizes) {
      if (size.engine != out_.engine) continue;
      const std::int64_t otherwise = size.item.empty() ? 1 : default_of(size.item);
      out_.*size.field = otherwise;
      if (size.flag.empty() || !arguments_.has(size.flag)) continue;
      const auto given = arguments_.integer(size.flag, otherwise, 1, size.most);
      if (!given) return tl::unexpected<Error>(given.error());
      out_.*size.field = *given;
    }
    return out_.engine == Engine::tensorrt_llm ? experts() : Expected<void>{};
  }

  // Its ranks share experts out whole, or cut each of them; both at once is a layout of its own.
  Expected<void> experts() {
    const auto ranks = arguments_.integer("--ep", 1, 1, kMostRanks);
    if (!ranks) return tl::unexpected<Error>(ranks.error());
    out_.expert_parallel = *ranks > 1;
    if (*ranks == 1 || *ranks == out_.tensor_parallel) return {};
    return fail(ErrorCode::unsupported, "--ep",
                fmt::format("{} of {} ranks, which cut experts besides, are not in this version; write 1 or {}", *ranks,
                            out_.tensor_parallel, out_.tensor_parallel));
  }

  Expected<void> types() {
    const std::string word = arguments_.text("--dtype", "auto");
    const bool has_bf16 = card_ == nullptr || supports_bf16(*card_) != hardware::Support::no;
    out_.dtype = has_bf16 ? DType::bf16 : DType::f16;
    if (word != "auto") {
      const auto read = parse_dtype(word == "float" ? "float32" : word);
      if (!read || (!is_half(*read) && *read != DType::f32))
        return refuse("--dtype", fmt::format("'{}' is no type of weights; write auto, bf16, fp16 or fp32", word));
      out_.dtype = *read;
    }
    out_.cache = model::cache_type(out_.dtype);
    return out_.engine == Engine::lmdeploy ? quant_policy() : cache_dtype();
  }

  Expected<void> cache_dtype() {
    const std::string word = arguments_.text("--kv-cache-dtype", "auto");
    if (word == "auto") return {};
    const auto read = model::parse_cache_type(word);
    if (read && read->block == 1) {
      out_.cache = *read;
      return {};
    }
    return refuse("--kv-cache-dtype",
                  fmt::format("'{}' is no type of this engine's cache; write auto, fp8 or int8", word.substr(0, 40)));
  }

  // Keys and values of four or eight bits, with a scale and a zero for each head of each token.
  // Source: docs/en/quantization/kv_quant.md; lmdeploy/pytorch/engine/cache_engine.py (scales_zeros).
  Expected<void> quant_policy() {
    const auto policy = arguments_.integer("--quant-policy", 0, 0, 8);
    if (!policy) return tl::unexpected<Error>(policy.error());
    if (*policy == 0) return {};
    if (*policy != 4 && *policy != 8) return refuse("--quant-policy", "is 0, 4 or 8: bits of keys and values");
    out_.cache = *policy == 8 ? model::CacheType{"int8", 1, 1} : model::CacheType{"int4", 2, 1};
    out_.scale_bytes = 2 * size_of(out_.dtype);
    return {};
  }

  Expected<void> fraction() {
    out_.fraction = budget::rule(out_, "fraction", card_).value;
    for (const Fraction& one : kFractions) {
      if (one.engine != out_.engine || !arguments_.has(one.flag)) continue;
      const auto given = arguments_.number(one.flag, out_.fraction);
      if (!given) return tl::unexpected<Error>(given.error());
      const bool count =
          out_.engine == Engine::lmdeploy && *given >= 1 &&
          *given == static_cast<double>(static_cast<std::int64_t>(std::min(*given, static_cast<double>(kMostTokens))));
      if (count) out_.blocks = static_cast<std::int64_t>(*given);
      else if (*given > 0 && *given <= 1) out_.fraction = *given;
      else return refuse(one.flag, fmt::format("{} is no share; expected more than 0 and at most 1", *given));
    }
    return out_.engine == Engine::mindie ? npu_memory() : most_tokens();
  }

  // Gigabytes of the cache; -1 leaves them to the engine.
  Expected<void> npu_memory() {
    if (!arguments_.has("--npu-mem-size") || arguments_.text("--npu-mem-size") == "-1") return {};
    const auto gigabytes = arguments_.integer("--npu-mem-size", 0, 1, 1 << 16);
    if (!gigabytes) return tl::unexpected<Error>(gigabytes.error());
    out_.pool_bytes = *gigabytes * kGiB;
    return {};
  }

  Expected<void> most_tokens() {
    constexpr std::string_view kFlag = "--max-batch-total-tokens";
    if (out_.engine != Engine::tgi || !arguments_.has(kFlag)) return {};
    const auto given = arguments_.integer(kFlag, 0, 1, kMostTokens);
    if (!given) return tl::unexpected<Error>(given.error());
    out_.most_tokens = *given;
    return {};
  }

  std::int64_t positions() const {
    constexpr std::int64_t kUnlimited = 4096;
    return architecture_.max_positions > 0 ? architecture_.max_positions : kUnlimited;
  }

  Expected<void> lengths() {
    switch (out_.engine) {
      case Engine::tensorrt_llm: return tensorrt_lengths();
      case Engine::mindie: return mindie_lengths();
      case Engine::lmdeploy: return length_of("--session-len");
      case Engine::tgi: return length_of("--max-total-tokens");
    }
    return {};
  }

  Expected<void> tensorrt_lengths() {
    out_.longest = std::min(out_.input_tokens + out_.output_tokens, kMostTokens);
    constexpr budget::Version kPyTorch{1, 0, 0};
    const bool sized = arguments_.has("--max_input_len") || arguments_.has("--max_output_len");
    if (out_.version >= kPyTorch && !sized) {
      out_.longest = positions();
      out_.output_tokens = std::min<std::int64_t>(out_.output_tokens, out_.longest / 2);
      out_.input_tokens = out_.longest - out_.output_tokens;
    }
    out_.contiguous = default_of("paged") == 0 && !arguments_.has("--tokens_per_block") &&
                      !arguments_.has("--kv_cache_free_gpu_mem_fraction");
    if (out_.prefill_tokens > 0) return {};
    out_.prefill_tokens = std::min(multiply_saturated(out_.max_batch, out_.input_tokens), kMostTokens);
    return {};
  }

  Expected<void> mindie_lengths() {
    const auto batch = arguments_.integer("--max-prefill-batch-size", default_of("prefill_batch"), 1, kMostBatch);
    if (!batch) return tl::unexpected<Error>(batch.error());
    if (out_.input_tokens >= out_.longest) {
      if (arguments_.has("--max-input-token-len"))
        return refuse("--max-input-token-len", fmt::format("{} leaves nothing of --max-seq-len {} to the output",
                                                           out_.input_tokens, out_.longest));
      out_.input_tokens = std::max<std::int64_t>(1, out_.longest - 1);
    }
    out_.output_tokens = std::min(out_.output_tokens, out_.longest - out_.input_tokens);
    out_.prefill_tokens = std::min(out_.prefill_tokens, multiply_saturated(*batch, out_.input_tokens));
    return {};
  }

  // One flag limits the whole request.
  Expected<void> length_of(std::string_view flag) {
    std::int64_t otherwise = positions();
    if (out_.engine == Engine::tgi && default_of("longest") > 0) otherwise = default_of("longest");
    const auto given = arguments_.integer(flag, otherwise, 2, kMostTokens);
    if (!given) return tl::unexpected<Error>(given.error());
    out_.longest = *given;
    out_.length_given = arguments_.has(flag);
    const bool input_given = out_.engine == Engine::tgi && arguments_.has("--max-input-tokens");
    if (input_given && out_.input_tokens >= out_.longest)
      return refuse("--max-input-tokens", fmt::format("{} must be less than --max-total-tokens {}; TGI refuses it",
                                                      out_.input_tokens, out_.longest));
    if (!input_given) out_.input_tokens = out_.longest - 1;
    out_.output_tokens = out_.longest - out_.input_tokens;
    return out_.engine == Engine::lmdeploy ? lmdeploy_engine() : Expected<void>{};
  }

  Expected<void> lmdeploy_engine() {
    out_.pytorch = arguments_.text("--backend", "turbomind") == "pytorch";
    const std::int64_t otherwise = default_of(out_.pytorch ? "pytorch_prefill_tokens" : "prefill_tokens");
    return arguments_.integer("--max-prefill-token-num", otherwise, 1, kMostTokens).map([&](std::int64_t tokens) {
      out_.prefill_tokens = tokens;
    });
  }

  Expected<void> layout() const {
    for (const model::LayerKind& kind : architecture_.kinds) {
      const std::int64_t heads = kind.attention.heads;
      if (kind.attention.kind == model::AttentionKind::none || heads % out_.tensor_parallel == 0) continue;
      const std::string_view flag = out_.engine == Engine::mindie ? "--world-size"
                                    : out_.engine == Engine::tgi  ? "--num-shard"
                                                                  : "--tp";
      return refuse(flag, fmt::format("{} does not divide the {} attention heads", out_.tensor_parallel, heads));
    }
    if (out_.pipeline_parallel <= architecture_.layer_count()) return {};
    return refuse("--pp", fmt::format("{} stages for {} layers; take fewer", out_.pipeline_parallel,
                                      architecture_.layer_count()));
  }

  const Arguments& arguments_;
  const model::Architecture& architecture_;
  const hardware::Gpu* card_;
  Options out_;
};

// The flags of an engine whose values are worth telling, as they were resolved.
std::vector<std::pair<std::string_view, std::int64_t>> told(const Options& options) {
  std::vector<std::pair<std::string_view, std::int64_t>> out;
  for (const Size& size : kSizes) {
    if (size.engine == options.engine && !size.flag.empty()) out.emplace_back(size.flag, options.*size.field);
  }
  if (options.engine == Engine::lmdeploy) {
    out.emplace_back("--session-len", options.longest);
    out.emplace_back("--max-prefill-token-num", options.prefill_tokens);
  }
  if (options.engine == Engine::tgi) out.emplace_back("--max-total-tokens", options.longest);
  return out;
}

std::string setting_name(std::string_view flag) {
  std::string out(flag.substr(2));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace

Expected<Options> budget_options(const Arguments& arguments, const LoadedModel& loaded, const hardware::Gpu* card) {
  return Reader(arguments, loaded, card).read();
}

Expected<std::optional<model::Quantisation>> budget_quantisation(const Arguments& arguments,
                                                                 const LoadedModel& loaded) {
  using Found = std::optional<model::Quantisation>;
  const auto found = [](model::Quantisation read) { return Found(std::move(read)); };
  if (loaded.quantisation.is_object())
    return model::read_quantisation(JsonObject(loaded.quantisation, "quantization_config")).map(found);
  const std::string_view flag = arguments.has("--quantize") ? "--quantize" : "--quantization";
  if (!arguments.has(flag)) return Found{};
  const std::string word = arguments.text(flag);
  const bool bitsandbytes = word == "bitsandbytes-nf4" || word == "bitsandbytes-fp4";
  return model::quantisation_named(bitsandbytes ? word.substr(word.size() - 3) : word).map(found);
}

Expected<std::optional<engines::vllm::Workload>> budget_workload(const Arguments& arguments, const Options& options) {
  const auto input = arguments.integer("--input-len", 1, 1, kMostTokens);
  if (!input) return tl::unexpected<Error>(input.error());
  const auto output = arguments.integer("--output-len", 1, 1, kMostTokens);
  if (!output) return tl::unexpected<Error>(output.error());
  if (!arguments.has("--input-len") && !arguments.has("--output-len")) {
    if (!arguments.has("--concurrency")) return std::nullopt;
    return refuse("--concurrency",
                  "says nothing without the length of the requests; give --input-len and --output-len");
  }
  engines::vllm::Workload out{*input, *output, std::nullopt};
  if (out.input_tokens + out.output_tokens > options.longest) {
    return refuse("--input-len", fmt::format("{} + {} tokens are more than the longest request of {}; raise that",
                                             out.input_tokens, out.output_tokens, options.longest));
  }
  if (!arguments.has("--concurrency") || arguments.text("--concurrency") == "max") return out;
  const auto wanted = arguments.integer("--concurrency", 1, 1, kMostTokens);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  out.concurrency = *wanted;
  return out;
}

std::vector<report::Setting> budget_settings(const Arguments& a, const Options& o, std::int64_t gpus) {
  std::vector<report::Setting> out{{"engine", std::string(budget::name_of(o.engine))},
                                   {"engine_version", budget::to_string(o.version)},
                                   {"gpus", gpus},
                                   {"dtype", std::string(name_of(o.dtype))},
                                   {"kv_cache_dtype", std::string(o.cache.name)},
                                   {"block_size", o.block_size},
                                   {"fraction", o.fraction}};
  for (const auto& [flag, value] : told(o)) out.push_back({setting_name(flag), value});
  if (a.has("--quantization")) out.push_back({"quantization", a.text("--quantization")});
  if (a.has("--quantize")) out.push_back({"quantize", a.text("--quantize")});
  if (o.pool_bytes) out.push_back({"npu_mem_size", *o.pool_bytes / kGiB});
  if (o.engine == Engine::lmdeploy) out.push_back({"backend", std::string(o.pytorch ? "pytorch" : "turbomind")});
  if (o.most_tokens) out.push_back({"max_batch_total_tokens", *o.most_tokens});
  return out;
}

std::vector<report::Message> budget_defaults(const Arguments& a, const Options& o) {
  std::string list;
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!a.has(option)) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", option, value);
  };
  add("--engine-version", budget::to_string(o.version));
  add("--dtype", std::string(name_of(o.dtype)));
  for (const auto& [flag, value] : told(o)) add(flag, std::to_string(value));
  for (const Fraction& one : kFractions) {
    if (one.engine == o.engine && !o.contiguous) add(one.flag, fmt::format("{:g}", o.fraction));
  }
  if (list.empty()) return {};
  return {{report::Text::assume_defaults, {{"options", list}}}};
}

}  // namespace ullage::cli
