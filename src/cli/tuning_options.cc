#include "cli/tuning_options.h"

#include <fmt/core.h>

#include <array>

namespace ullage::cli {
namespace {

using engines::pytorch::TrainOptions;
using model::BaseFormat;
using model::Tuner;
using report::Setting;

constexpr std::int64_t kMostRank = 1 << 16;
constexpr std::int64_t kMostVirtualTokens = 1 << 16;
constexpr std::int64_t kDefaultVirtualTokens = 20;  // of PEFT's examples; its configurations ask for a number
constexpr std::size_t kMostNames = 64;

constexpr std::pair<std::string_view, Tuner> kTuners[] = {{"lora", Tuner::lora},     {"lora-fa", Tuner::lora_fa},
                                                          {"dora", Tuner::dora},     {"ia3", Tuner::ia3},
                                                          {"prompt", Tuner::prompt}, {"prefix", Tuner::prefix}};

constexpr std::pair<std::string_view, BaseFormat> kFormats[] = {
    {"nf4", BaseFormat::nf4},   {"nf4-dq", BaseFormat::nf4_dq}, {"fp4", BaseFormat::fp4},
    {"int8", BaseFormat::int8}, {"gptq", BaseFormat::gptq},     {"awq", BaseFormat::awq}};

// LLaMA-Adapter's, 0: another tuner or none.
std::int64_t adapter_version(const Arguments& arguments) {
  const std::string tuner = arguments.text("--tuner");
  return tuner == "adapter" ? 1 : tuner == "adapter-v2" ? 2 : 0;
}

// What GPTQ and AWQ weights compute in, and what PEFT's preparation leaves of them.
Expected<void> check_packed(const Arguments& arguments) {
  const std::string format = arguments.text("--quantize-base");
  if (format != "gptq" && format != "awq") return {};
  if (arguments.text("--modules", "transformers") != "transformers")
    return not_in_this_version("--quantize-base", fmt::format("{} in another code base", format));
  if (arguments.text("--precision") == "fp32")
    return fail(ErrorCode::invalid_argument, "--quantize-base",
                fmt::format("{} computes in half precision; use --precision fp16 or bf16", format));
  if (!arguments.has("--prepare-kbit")) return {};
  return not_in_this_version("--prepare-kbit", fmt::format("with --quantize-base {}", format));
}

// bitsandbytes keeps weights for adapters only; its kernels for a processor are others.
Expected<void> check_quantised(const Arguments& arguments) {
  if (!arguments.has("--quantize-base")) {
    if (!arguments.has("--prepare-kbit")) return {};
    return fail(ErrorCode::invalid_argument, "--prepare-kbit", "prepares a quantised model; add --quantize-base");
  }
  if (!arguments.has("--lora") && adapter_version(arguments) == 0)
    return fail(ErrorCode::invalid_argument, "--quantize-base", "leaves nothing to train; add --lora RANK");
  if (arguments.text("--tuner") == "dora") return not_in_this_version("--quantize-base", "with --tuner dora");
  if (arguments.text("--kernels") == "cpu") return not_in_this_version("--quantize-base", "with --kernels cpu");
  const bool reentrant = arguments.has("--recompute-reentrant");
  if (arguments.text("--quantize-base") == "int8" && arguments.text("--recompute", "none") != "none" && !reentrant)
    return not_in_this_version("--quantize-base", "int8 with --recompute that is not reentrant");
  return check_packed(arguments);
}

std::string_view name_of(Tuner tuner) {
  for (const auto& [name, value] : kTuners) {
    if (value == tuner) return name;
  }
  return "none";
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("{}{}", out.empty() ? "" : ",", name);
  return out;
}

Expected<std::vector<std::string>> list(const Arguments& arguments, std::string_view option) {
  std::vector<std::string> out;
  if (!arguments.has(option)) return out;
  const std::string given = arguments.text(option);
  for_each_word(given, ',', [&](std::string_view word) { out.emplace_back(word); });
  const bool empty = given.starts_with(',') || given.ends_with(',') || given.find(",,") != std::string::npos;
  if (empty || out.empty() || out.size() > kMostNames)
    return fail(ErrorCode::invalid_argument, std::string(option),
                fmt::format("'{}' is no list of names of modules with commas between them", given.substr(0, 60)));
  return out;
}

Tuner tuner_of(const Arguments& arguments) {
  const bool adapted = arguments.has("--lora") || arguments.has("--tuner");
  if (!adapted || adapter_version(arguments) > 0) return Tuner::none;
  const std::string given = arguments.text("--tuner", "lora");
  for (const auto& [name, value] : kTuners) {
    if (name == given) return value;
  }
  return Tuner::lora;
}

tl::unexpected<Error> foreign(std::string_view option, Tuner tuner) {
  return fail(ErrorCode::invalid_argument, std::string(option),
              fmt::format("does not go with --tuner {}; leave it out", name_of(tuner)));
}

// Kinds of adapters that have no rank.
Expected<void> check_tuner(const Arguments& arguments, Tuner tuner) {
  if (has_rank(tuner)) {
    if (!arguments.has("--lora")) return fail(ErrorCode::invalid_argument, "--tuner", "needs a rank; add --lora RANK");
    return arguments.has("--virtual-tokens") ? Expected<void>(foreign("--virtual-tokens", tuner)) : Expected<void>{};
  }
  if (arguments.text("--modules", "transformers") != "transformers")
    return not_in_this_version("--tuner", arguments.text("--tuner") + " without --modules transformers");
  for (const std::string_view option : {"--lora", "--lora-dropout", "--modules-to-save"}) {
    if (arguments.has(option)) return foreign(option, tuner);
  }
  if (arguments.has("--quantize-base")) return not_in_this_version("--quantize-base", "with this --tuner");
  if (tuner == Tuner::ia3) {
    return arguments.has("--virtual-tokens") ? Expected<void>(foreign("--virtual-tokens", tuner)) : Expected<void>{};
  }
  for (const std::string_view option : {"--lora-targets", "--lora-dtype"}) {
    if (arguments.has(option)) return foreign(option, tuner);
  }
  if (arguments.text("--loss") == "none" || arguments.text("--loss") == "fused")
    return not_in_this_version("--loss", "other than full with virtual tokens");
  if (tuner == Tuner::prefix && arguments.text("--recompute", "none") != "none")
    return fail(ErrorCode::invalid_argument, "--recompute", "PEFT refuses it with prefix tuning; leave it at none");
  return {};
}

// What belongs to adapters needs them; what freezes by hand contradicts them.
Expected<void> check_together(const Arguments& arguments) {
  constexpr std::array kOfAdapters{"--lora-targets", "--lora-dropout", "--lora-dtype", "--modules-to-save",
                                   "--virtual-tokens"};
  if (adapter_version(arguments) > 0) {
    if (arguments.text("--modules") != "litgpt")
      return not_in_this_version("--tuner", arguments.text("--tuner") + " without --modules litgpt");
    if (!arguments.has("--lora")) return {};
    return fail(ErrorCode::invalid_argument, "--lora", "contradicts --tuner adapter; leave one out");
  }
  const Tuner tuner = tuner_of(arguments);
  if (tuner != Tuner::none) {
    if (auto checked = check_tuner(arguments, tuner); !checked) return checked;
    if (!arguments.has("--freeze")) return {};
    return fail(ErrorCode::invalid_argument, "--freeze",
                "contradicts --lora, which freezes the whole model; leave it out");
  }
  for (const std::string_view option : kOfAdapters) {
    if (arguments.has(option))
      return fail(ErrorCode::invalid_argument, std::string(option), "needs adapters; add --lora RANK");
  }
  return {};
}

// What the code that makes the adapters takes where nothing is said.
double usual_dropout(const TrainOptions& options) { return options.code != nullptr ? options.code->lora_dropout : 0; }

std::vector<std::string> usual_targets(const TrainOptions& options, const model::Architecture& architecture) {
  if (options.code == nullptr) return model::default_targets(architecture.family, options.tuning.tuner);
  if (options.code->code == engines::pytorch::CodeBase::litgpt) return {"query", "value"};
  return {"q_proj", "v_proj", "output_proj", "w1", "w2", "w3"};
}

std::string lora_dtype(const Arguments& arguments, const TrainOptions& options) {
  return arguments.text("--lora-dtype", options.code != nullptr ? "base" : "fp32");
}

}  // namespace

Expected<void> read_tuning(const Arguments& arguments, TrainOptions& options) {
  if (auto checked = check_together(arguments); !checked) return checked;
  if (auto checked = check_quantised(arguments); !checked) return checked;
  const auto rank = arguments.integer("--lora", 0, 1, kMostRank);
  if (!rank) return tl::unexpected<Error>(rank.error());
  const auto dropout = arguments.number("--lora-dropout", usual_dropout(options));
  if (!dropout) return tl::unexpected<Error>(dropout.error());
  if (*dropout >= 1) return fail(ErrorCode::invalid_argument, "--lora-dropout", "must be less than 1");
  const std::array<std::pair<std::string_view, std::vector<std::string>*>, 3> lists{{
      {"--lora-targets", &options.tuning.targets},
      {"--modules-to-save", &options.tuning.saved},
      {"--freeze", &options.tuning.frozen},
  }};
  for (const auto& [option, names] : lists) {
    auto given = list(arguments, option);
    if (!given) return tl::unexpected<Error>(given.error());
    *names = *std::move(given);
  }
  options.tuning.rank = *rank;
  const auto tokens = arguments.integer("--virtual-tokens", kDefaultVirtualTokens, 1, kMostVirtualTokens);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  options.tuning.tuner = tuner_of(arguments);
  if (adds_tokens(options.tuning.tuner)) options.tuning.virtual_tokens = *tokens;
  for (const auto& [name, format] : kFormats) {
    if (arguments.text("--quantize-base") == name) options.tuning.base = format;
  }
  options.llama_adapter = adapter_version(arguments);
  options.tuning.prepared = arguments.has("--prepare-kbit");
  options.lora_dropout = *dropout;
  options.lora_in_fp32 = lora_dtype(arguments, options) == "fp32";
  return {};
}

std::vector<Setting> tuning_settings(const Arguments& arguments, const TrainOptions& options,
                                     const model::Architecture& architecture) {
  const Tuner tuner = options.tuning.tuner;
  std::vector<Setting> out{{"lora", options.tuning.rank}};
  if (tuner != Tuner::none) out.push_back({"tuner", std::string(name_of(tuner))});
  if (adds_tokens(tuner)) out.push_back({"virtual_tokens", options.tuning.virtual_tokens});
  if (has_rank(tuner) || tuner == Tuner::ia3) {
    const std::vector<std::string> targets =
        options.tuning.targets.empty() ? usual_targets(options, architecture) : options.tuning.targets;
    out.push_back({"lora_targets", joined(targets)});
    if (has_rank(tuner)) out.push_back({"lora_dropout", options.lora_dropout});
    out.push_back({"lora_dtype", lora_dtype(arguments, options)});
    if (!options.tuning.saved.empty()) out.push_back({"modules_to_save", joined(options.tuning.saved)});
  }
  if (options.llama_adapter > 0) out.push_back({"tuner", arguments.text("--tuner")});
  if (options.tuning.base != BaseFormat::plain) {
    out.push_back({"quantize_base", arguments.text("--quantize-base")});
    out.push_back({"prepare_kbit", options.tuning.prepared});
  }
  if (!options.tuning.frozen.empty()) out.push_back({"freeze", joined(options.tuning.frozen)});
  return out;
}

std::vector<std::pair<std::string_view, std::string>> tuning_defaults(const TrainOptions& options,
                                                                      const model::Architecture& architecture) {
  const Tuner tuner = options.tuning.tuner;
  if (tuner == Tuner::none) return {};
  if (adds_tokens(tuner)) return {{"--virtual-tokens", std::to_string(options.tuning.virtual_tokens)}};
  std::vector<std::pair<std::string_view, std::string>> out{
      {"--tuner", "lora"}, {"--lora-targets", joined(usual_targets(options, architecture))}};
  if (has_rank(tuner)) out.emplace_back("--lora-dropout", fmt::format("{}", usual_dropout(options)));
  out.emplace_back("--lora-dtype", options.code != nullptr ? "base" : "fp32");
  return out;
}

}  // namespace ullage::cli
