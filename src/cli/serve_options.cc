#include "cli/serve_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/versions.h"
#include "model/gguf_mix.h"
#include "model/quantisation.h"

namespace ullage::cli {
namespace {

namespace hf = engines::transformers;
namespace pt = engines::pytorch;

constexpr std::int64_t kMostSequences = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 26;
constexpr std::int64_t kUsualPrompt = 2048;
constexpr std::int64_t kUsualAnswer = 64;

// The prompt's default leaves room for what is generated.
std::int64_t usual_prompt(const model::Architecture& architecture, std::int64_t new_tokens) {
  if (architecture.max_positions == 0) return kUsualPrompt;
  return std::clamp<std::int64_t>(architecture.max_positions - new_tokens + 1, 1, kUsualPrompt);
}

Expected<hf::ServeOptions> read_options(const Arguments& a, const model::Architecture& architecture) {
  hf::ServeOptions out;
  const auto batch = a.integer("--batch", 1, 1, kMostSequences);
  if (!batch) return tl::unexpected<Error>(batch.error());
  const auto new_tokens = a.integer("--new-tokens", kUsualAnswer, 1, kMostTokens);
  if (!new_tokens) return tl::unexpected<Error>(new_tokens.error());
  const auto prompt = a.integer("--seq-len", usual_prompt(architecture, *new_tokens), 1, kMostTokens);
  if (!prompt) return tl::unexpected<Error>(prompt.error());
  out.batch = *batch;
  out.seq_len = *prompt;
  out.new_tokens = *new_tokens;
  out.dtype = parse_dtype(a.text("--dtype", "bf16")).value_or(DType::bf16);
  out.cache = a.text("--cache") == "static" ? hf::CacheKind::fixed : hf::CacheKind::dynamic;
  const bool eager_only = !architecture.kinds.empty() && architecture.kinds[0].attention.eager_only;
  if (eager_only && a.text("--attention", "eager") != "eager")
    return fail(ErrorCode::invalid_argument, "--attention",
                fmt::format("transformers' {} has eager attention only; use eager", architecture.family));
  if (eager_only || a.text("--attention") == "eager") out.attention = pt::AttentionImpl::eager;
  if (a.text("--kernels") == "cuda-traced") out.kernels = pt::Kernels::cuda_traced;
  return out;
}

constexpr std::pair<std::string_view, model::BaseFormat> kFormats[] = {
    {"none", model::BaseFormat::plain}, {"nf4", model::BaseFormat::nf4},   {"nf4-dq", model::BaseFormat::nf4_dq},
    {"fp4", model::BaseFormat::fp4},    {"int8", model::BaseFormat::int8}, {"gptq", model::BaseFormat::gptq},
    {"awq", model::BaseFormat::awq}};

std::optional<model::BaseFormat> format_named(std::string_view word) {
  for (const auto& [name, format] : kFormats) {
    if (name == word) return format;
  }
  return std::nullopt;
}

std::string_view name_of(model::BaseFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "none";
}

// What --quantization names, else what the model's own quantization_config says where it is one of those.
Expected<void> take_format(const Arguments& a, const LoadedModel& loaded, ServeSetup& setup) {
  constexpr std::int64_t kBits = 4;
  constexpr std::int64_t kGroup = 128;
  if (a.has("--quantization")) {
    const std::string word = a.text("--quantization");
    const auto format = format_named(word);
    if (!format) {
      if (model::quantisation_named(word) || model::is_gguf_mix(word))
        return not_in_this_version("--quantization", fmt::format("{} with transformers", word));
      return fail(ErrorCode::invalid_argument, "--quantization",
                  fmt::format("'{}' is not one of none, nf4, nf4-dq, fp4, int8, gptq, awq", word.substr(0, 40)));
    }
    setup.options.weights = *format;
    return {};
  }
  if (!loaded.quantisation.is_object()) return {};
  const JsonObject config(loaded.quantisation, "quantization_config");
  const std::string method = config.string("quant_method", "?").value_or("?");
  const auto own = model::read_quantisation(config);
  const model::WeightScheme scheme = own && own->rules.size() == 1 ? own->rules.front().scheme : model::WeightScheme{};
  const auto format = format_named(scheme.name);
  const bool packed = scheme.format == model::WeightFormat::gptq || scheme.format == model::WeightFormat::awq;
  if (!format || (packed && (scheme.bits != kBits || scheme.group != kGroup))) {
    setup.warnings.push_back({report::Text::warn_serve_quantised, {{"method", method}}});
    return {};
  }
  setup.options.weights = *format;
  setup.assumptions.push_back({report::Text::assume_own_quantization, {{"method", method}}});
  return {};
}

hf::DeviceMap device_map_named(std::string_view word) {
  if (word == "sequential") return hf::DeviceMap::sequential;
  return word == "balanced_low_0" ? hf::DeviceMap::balanced_low_0 : hf::DeviceMap::balanced;
}

std::string name_of(pt::AttentionImpl attention) { return attention == pt::AttentionImpl::eager ? "eager" : "sdpa"; }

std::vector<report::Setting> settings_of(const Arguments& a, const hf::ServeOptions& o) {
  std::vector<report::Setting> out{{"engine", std::string("transformers")},
                                   {"torch", std::string(kTorchVersion)},
                                   {"transformers", std::string(kTransformersVersion)},
                                   {"kernels", a.text("--kernels", "cuda")},
                                   {"gpus", std::int64_t{1}},
                                   {"batch", o.batch},
                                   {"seq_len", o.seq_len},
                                   {"new_tokens", o.new_tokens},
                                   {"dtype", std::string(ullage::name_of(o.dtype))},
                                   {"quantization", std::string(name_of(o.weights))},
                                   {"attention", name_of(o.attention)},
                                   {"cache", a.text("--cache", "dynamic")}};
  if (a.has("--alloc-conf")) out.push_back({"alloc_conf", a.text("--alloc-conf")});
  return out;
}

std::vector<report::Message> defaults_of(const Arguments& a, const hf::ServeOptions& o) {
  const std::pair<std::string_view, std::string> defaults[] = {{"--engine", "transformers"},
                                                               {"--batch", std::to_string(o.batch)},
                                                               {"--seq-len", std::to_string(o.seq_len)},
                                                               {"--new-tokens", std::to_string(o.new_tokens)},
                                                               {"--dtype", "bf16"},
                                                               {"--attention", name_of(o.attention)},
                                                               {"--cache", "dynamic"}};
  std::string list;
  for (const auto& [option, value] : defaults) {
    if (!a.has(option)) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", option, value);
  }
  if (list.empty()) return {};
  return {{report::Text::assume_defaults, {{"options", list}}}};
}

}  // namespace

Expected<ServeSetup> resolve_serve_options(const Arguments& arguments, const LoadedModel& loaded) {
  const model::Architecture& architecture = loaded.architecture;
  const auto known = check_version(arguments, "--torch", kTorchVersion).and_then([&] {
    return check_version(arguments, "--transformers", kTransformersVersion);
  });
  if (!known) return tl::unexpected<Error>(known.error());
  const auto options = read_options(arguments, architecture);
  if (!options) return tl::unexpected<Error>(options.error());
  ServeSetup out;
  out.options = *options;
  if (auto taken = take_format(arguments, loaded, out); !taken) return tl::unexpected<Error>(taken.error());
  const auto allocator = memory::parse_allocator_settings(arguments.text("--alloc-conf"), "--alloc-conf");
  if (!allocator) return tl::unexpected<Error>(allocator.error());
  out.device_map = device_map_named(arguments.text("--device-map", "auto"));
  out.settings = settings_of(arguments, out.options);
  std::vector<report::Message> defaults = defaults_of(arguments, out.options);
  out.assumptions.insert(out.assumptions.begin(), defaults.begin(), defaults.end());
  out.allocator = *allocator;
  if (architecture.max_positions > 0 && options->cached_tokens() > architecture.max_positions) {
    out.warnings.push_back(
        {report::Text::warn_positions, {{"seq_len", options->cached_tokens()}, {"limit", architecture.max_positions}}});
  }
  return out;
}

}  // namespace ullage::cli
