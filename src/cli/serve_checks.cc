#include "cli/serve_checks.h"

#include <fmt/core.h>

#include <charconv>
#include <iterator>

#include "base/bytes.h"
#include "base/nearest.h"
#include "cli/answer.h"

namespace ullage::cli {
namespace {

using report::Text;

struct Suffix {
  char letter;
  std::int64_t factor;
};

// vLLM's own short forms of numbers: small letters are decimal, capitals binary.
constexpr Suffix kSuffixes[] = {{'k', 1'000}, {'m', 1'000'000}, {'g', 1'000'000'000},
                                {'K', kKiB},  {'M', kMiB},      {'G', kGiB}};

struct Method {
  std::string_view word;
  std::string_view format;
};

// vLLM's words, most of which are SGLang's too, for what a plain checkpoint of that kind would hold; others are names
// of methods that say nothing of a plain one, or that are not modelled. Source:
// vllm/model_executor/layers/quantization/__init__.py, sglang/srt/layers/quantization/__init__.py.
constexpr Method kMethods[] = {
    {"awq", "awq"},          {"awq_marlin", "awq"},    {"gptq", "gptq"},   {"gptq_marlin", "gptq"},
    {"auto-round", "gptq"},  {"auto_round", "gptq"},   {"fp8", "fp8"},     {"fbgemm_fp8", "fp8"},
    {"ptpc_fp8", "fp8"},     {"modelopt", "fp8"},      {"mxfp4", "mxfp4"}, {"modelopt_fp4", "nvfp4"},
    {"bitsandbytes", "nf4"}, {"experts_int8", "int8"},
};
// Those that SGLang has beside them.
constexpr Method kMethodsOfSglang[] = {{"modelopt_fp8", "fp8"}, {"w8a8_fp8", "fp8"}, {"w8a8_int8", "int8"}};
constexpr std::string_view kUnmodelled[] = {"compressed-tensors",
                                            "quark",
                                            "gguf",
                                            "hqq",
                                            "bitblas",
                                            "torchao",
                                            "marlin",
                                            "aqlm",
                                            "squeezellm",
                                            "gptq_marlin_24",
                                            "gptq_bitblas",
                                            "deepspeedfp",
                                            "moe_wna16",
                                            "tpu_int8",
                                            "neuron_quant",
                                            "ipex",
                                            "qqq",
                                            "fp_quant",
                                            "petit_nvfp4",
                                            "inc",
                                            "rtn",
                                            "modelopt_mxfp8",
                                            "modelopt_mixed"};

// Words of others for what these engines call bitsandbytes.
constexpr std::string_view kBitsandbytes[] = {"nf4", "nf4-dq", "fp4", "fp4-dq", "int4", "int8", "bnb", "4bit", "8bit"};

std::vector<Method> methods_of(std::string_view engine) {
  std::vector<Method> out(std::begin(kMethods), std::end(kMethods));
  if (engine == "SGLang") out.insert(out.end(), std::begin(kMethodsOfSglang), std::end(kMethodsOfSglang));
  return out;
}

tl::unexpected<Error> no_method(const std::string& word, std::string_view engine) {
  const std::vector<Method> methods = methods_of(engine);
  std::vector<std::string_view> names;
  for (const Method& method : methods) names.push_back(method.word);
  names.insert(names.end(), std::begin(kUnmodelled), std::end(kUnmodelled));
  std::vector<std::string> nearest = nearest_names(word, names);
  for (const std::string_view one : kBitsandbytes) {
    if (word == one) nearest = {"bitsandbytes"};
  }
  std::string list;
  for (const Method& method : methods) list += fmt::format("{}{}", list.empty() ? "" : ", ", method.word);
  const std::string hint = nearest.empty() ? "known are " + list : did_you_mean(nearest);
  return fail(ErrorCode::invalid_argument, "--quantization",
              fmt::format("'{}' is no way of quantising of {}; {}", word.substr(0, 40), engine, hint));
}

Expected<std::string> format_of(const std::string& word, ScalesOfNf4 scales, std::string_view engine) {
  if (word == "bitsandbytes") return std::string(scales == ScalesOfNf4::taken_apart ? "nf4" : "nf4-dq");
  for (const Method& method : methods_of(engine)) {
    if (method.word == word) return std::string(method.format);
  }
  for (const std::string_view name : kUnmodelled) {
    if (name != word) continue;
    return fail(ErrorCode::invalid_argument, "--quantization",
                fmt::format("{} says nothing without the checkpoint's quantization_config; name a model that has one, "
                            "or another way of quantising, such as fp8 or awq",
                            word));
  }
  return no_method(word, engine);
}

}  // namespace

Expected<std::optional<std::int64_t>> suffixed_count(const Arguments& arguments, std::string_view option,
                                                     std::int64_t low, std::int64_t high) {
  if (!arguments.has(option)) return std::nullopt;
  const std::string given = arguments.text(option);
  std::string_view digits = given;
  std::int64_t factor = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (digits.empty() || digits.back() != suffix.letter) continue;
    factor = suffix.factor;
    digits.remove_suffix(1);
    break;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = error == std::errc{} && end == digits.data() + digits.size() && !digits.empty() && value >= 0;
  if (read) value = multiply_saturated(value, factor);
  if (read && value >= low && value <= high) return value;
  return fail(ErrorCode::invalid_argument, std::string(option),
              fmt::format("'{}' is not a whole number from {} to {}", given.substr(0, 60), low, high));
}

Expected<void> check_generates(const model::Architecture& architecture, std::string_view engine) {
  const bool text = architecture.input == model::InputKind::tokens && !architecture.is_module_tree();
  // The layers in front are a tower's, or those of an encoder whose keys and values the decoder reads.
  const bool decodes_alone = architecture.encoder_layers == 0 || architecture.vision;
  if (text && decodes_alone && architecture.layer_count() > 0) return {};
  return fail(ErrorCode::unsupported, architecture.name,
              fmt::format("a model of this kind ({}) under {} is not in this version", architecture.family, engine));
}

Expected<void> check_card(const hardware::Gpu* card, std::string_view engine, hardware::ComputeCapability least) {
  if (card == nullptr || card->id == "unnamed") return {};
  if (card->vendor == "Apple")
    return fail(ErrorCode::unsupported, "--gpu",
                fmt::format("{} on {} is not in this version; name a card of another vendor", engine, card->name));
  if (!card->compute_capability || *card->compute_capability >= least) return {};
  return fail(ErrorCode::invalid_argument, "--gpu",
              fmt::format("{} has compute capability {} and {}'s kernels begin at {}; name a newer card", card->name,
                          to_string(*card->compute_capability), engine, to_string(least)));
}

Expected<Served> load_served(const Arguments& arguments, const Files& files, std::string_view engine,
                             const std::function<Expected<void>(const hardware::Gpu*)>& runs_on) {
  if (arguments.has("--html")) return not_in_this_version("--html", fmt::format("a page about {}", engine));
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files, Extent::outline);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (auto checked = check_generates(loaded->architecture, engine); !checked)
    return tl::unexpected<Error>(checked.error());
  auto device = choose_equal_devices(arguments, files);
  if (!device) return tl::unexpected<Error>(device.error());
  Served out{*std::move(loaded), *std::move(device)};
  const std::vector<hardware::Gpu> kinds =
      out.card() == nullptr ? std::vector<hardware::Gpu>{} : std::vector{*out.card()};
  if (auto linked = check_interconnect(arguments, kinds); !linked) return tl::unexpected<Error>(linked.error());
  if (auto runs = runs_on(out.card()); !runs) return tl::unexpected<Error>(runs.error());
  return out;
}

std::optional<std::string> given_text(const Arguments& arguments, std::string_view option) {
  return arguments.has(option) ? std::optional(arguments.text(option)) : std::nullopt;
}

std::vector<report::Message> defaults_told(const Arguments& arguments,
                                           std::span<const std::pair<std::string_view, std::string>> values) {
  std::string list;
  for (const auto& [option, value] : values) {
    if (!arguments.has(option)) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", option, value);
  }
  if (list.empty()) return {};
  return {{Text::assume_defaults, {{"options", list}}}};
}

void tell_served(report::Prediction& out, std::vector<report::Message> resolved, const Served& served,
                 std::int64_t unused, std::int64_t gpus, Text key) {
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = std::move(resolved);
  append(out.assumptions, served.loaded.assumptions);
  append(out.assumptions, served.device.assumptions);
  append(out.assumptions, std::move(of_engine));
  if (unused > 0) out.warnings.push_back({key, {{"unused", unused}, {"count", gpus}}});
  for (const report::Message& warning : served.loaded.warnings) {
    // Said of training, and not so here: the weights are counted as they are stored.
    if (warning.key != Text::warn_quantised) out.warnings.push_back(warning);
  }
}

namespace {

report::Message beside_rules(Text key, std::string_view engine, engines::serving::Version version,
                             engines::serving::Version known) {
  return {key,
          {{"engine", std::string(engine)},
           {"version", engines::serving::to_string(version)},
           {"known", engines::serving::to_string(known)}}};
}

}  // namespace

report::Message newer_than_rules(std::string_view engine, engines::serving::Version version,
                                 engines::serving::Version known) {
  return beside_rules(Text::warn_engine_newer, engine, version, known);
}

report::Message older_than_rules(std::string_view engine, engines::serving::Version version,
                                 engines::serving::Version known) {
  return beside_rules(Text::warn_engine_older, engine, version, known);
}

Expected<std::int64_t> gpu_count(const ChosenDevice& device, std::int64_t needed) {
  if (device.named_count && *device.named_count < needed)
    return fail(ErrorCode::invalid_argument, "--gpus",
                fmt::format("{} are fewer than the {} that tensor, pipeline and data parallelism take",
                            *device.named_count, needed));
  return device.named_count.value_or(needed);
}

Expected<std::optional<engines::serving::Workload>> serving_workload(const Arguments& arguments, std::int64_t longest,
                                                                     std::string_view option) {
  const auto input = suffixed_count(arguments, "--input-len", 1, kMostTokens);
  if (!input) return tl::unexpected<Error>(input.error());
  const auto output = suffixed_count(arguments, "--output-len", 1, kMostTokens);
  if (!output) return tl::unexpected<Error>(output.error());
  if (!*input && !*output) {
    if (!arguments.has("--concurrency")) return std::nullopt;
    return fail(ErrorCode::invalid_argument, "--concurrency",
                "says nothing without the length of the requests; give --input-len and --output-len");
  }
  engines::serving::Workload out{input->value_or(1), output->value_or(1), std::nullopt};
  if (out.input_tokens + out.output_tokens > longest) {
    return fail(ErrorCode::invalid_argument, "--input-len",
                fmt::format("{} + {} tokens are more than the longest request of {}; raise {}", out.input_tokens,
                            out.output_tokens, longest, option));
  }
  if (arguments.text("--concurrency") == "max") return out;
  const auto wanted = suffixed_count(arguments, "--concurrency", 1, kMostTokens);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  out.concurrency = *wanted;
  return out;
}

Expected<std::optional<model::Quantisation>> serving_quantisation(const Arguments& arguments, const LoadedModel& loaded,
                                                                  ScalesOfNf4 scales, std::string_view engine) {
  using Found = std::optional<model::Quantisation>;
  if (loaded.quantisation.is_object()) {
    return model::read_quantisation(JsonObject(loaded.quantisation, "quantization_config"))
        .map([](model::Quantisation read) { return Found(std::move(read)); });
  }
  if (!arguments.has("--quantization")) return Found{};
  return format_of(arguments.text("--quantization"), scales, engine)
      .and_then([](const std::string& format) { return model::quantisation_named(format); })
      .map([](model::Quantisation read) { return Found(std::move(read)); });
}

}  // namespace ullage::cli
