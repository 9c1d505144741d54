#include "cli/serve_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/train_options.h"
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

constexpr std::string_view kCacheKeys = "backend nbits axis_key axis_value q_group_size residual_length";

hf::CacheKind cache_named(std::string_view word) {
  if (word == "static") return hf::CacheKind::fixed;
  if (word == "offloaded") return hf::CacheKind::offloaded;
  return word == "quantized" ? hf::CacheKind::quantised : hf::CacheKind::dynamic;
}

// generate()'s cache_config.
Expected<hf::QuantisedCache> read_cache_config(const Arguments& a) {
  constexpr std::string_view kOption = "--cache-config";
  constexpr std::int64_t kMost = 1 << 20;
  hf::QuantisedCache out;
  if (!a.has(kOption)) return out;
  if (a.text("--cache") != "quantized")
    return fail(ErrorCode::invalid_argument, std::string(kOption), "is for --cache quantized");
  const auto json = parse_json(a.text(kOption), kOption);
  if (!json) return tl::unexpected<Error>(json.error());
  if (!json->is_object())
    return fail(ErrorCode::malformed, std::string(kOption), "is no object; expected one such as {\"nbits\": 4}");
  for (const auto& [key, value] : json->items()) {
    if ((" " + std::string(kCacheKeys) + " ").find(" " + key + " ") == std::string::npos)
      return fail(ErrorCode::invalid_argument, std::string(kOption),
                  fmt::format("has no '{}'; known are {}", key.substr(0, 40), kCacheKeys));
  }
  const JsonObject form(*json, std::string(kOption));
  const auto backend = form.string("backend", "quanto");
  if (!backend) return tl::unexpected<Error>(backend.error());
  if (*backend != "quanto" && *backend != "hqq")
    return fail(ErrorCode::invalid_argument, std::string(kOption),
                fmt::format("'{}' is not one of the backends quanto and hqq", backend->substr(0, 40)));
  if (*backend == "hqq") out.backend = hf::CacheBackend::hqq;
  const auto number = [&](std::string_view key, std::int64_t fallback, std::int64_t low) {
    return form.integer(key, fallback, low, kMost);
  };
  const auto bits = number("nbits", out.bits, 1);
  const auto key = number("axis_key", out.axis_key, -1);
  const auto value = number("axis_value", out.axis_value, -1);
  const auto group = number("q_group_size", out.group, 1);
  const auto residual = number("residual_length", out.residual_length, 1);
  for (const auto* read : {&bits, &key, &value, &group, &residual}) {
    if (!*read) return tl::unexpected<Error>(read->error());
  }
  out.bits = *bits;
  out.axis_key = static_cast<int>(*key);
  out.axis_value = static_cast<int>(*value);
  out.group = *group;
  out.residual_length = *residual;
  return out;
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
  out.cache = cache_named(a.text("--cache"));
  const auto cache = read_cache_config(a);
  if (!cache) return tl::unexpected<Error>(cache.error());
  out.quantised_cache = *cache;
  const bool eager_only = !architecture.kinds.empty() && architecture.kinds[0].attention.eager_only;
  if (eager_only && a.text("--attention", "eager") != "eager")
    return fail(ErrorCode::invalid_argument, "--attention",
                fmt::format("transformers' {} has eager attention only; use eager", architecture.family));
  if (eager_only || a.text("--attention") == "eager") out.attention = pt::AttentionImpl::eager;
  if (a.text("--attention") == "flash") out.attention = pt::AttentionImpl::flash;
  if (out.attention == pt::AttentionImpl::flash && out.dtype == DType::f32)
    return fail(ErrorCode::invalid_argument, "--attention", "flash attention takes bf16 or fp16; choose --dtype bf16");
  if (out.attention == pt::AttentionImpl::flash) {
    if (auto known = check_flash_of(architecture); !known) return tl::unexpected<Error>(known.error());
  }
  if (a.text("--kernels") == "cuda-traced") out.kernels = pt::Kernels::cuda_traced;
  return out;
}

constexpr std::pair<std::string_view, model::BaseFormat> kFormats[] = {
    {"none", model::BaseFormat::plain}, {"nf4", model::BaseFormat::nf4},   {"nf4-dq", model::BaseFormat::nf4_dq},
    {"fp4", model::BaseFormat::fp4},    {"int8", model::BaseFormat::int8}, {"gptq", model::BaseFormat::gptq},
    {"awq", model::BaseFormat::awq},    {"fp8", model::BaseFormat::fp8}};

// Of transformers, beside those.
constexpr std::string_view kOtherMethods =
    " aqlm auto-round bitnet bitnet-158 compressed-tensors eetq fbgemm_fp8 finegrained_fp8 fouroversix fp_quant "
    "fp8-block "
    "higgs hqq metal mxfp4 mxfp8 quanto quark sinq spqr torchao vptq ";

bool has_experts(const model::Architecture& architecture) {
  return std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                     [](const model::LayerKind& kind) { return kind.mixture.experts.count > 0; });
}

Expected<void> check_format(model::BaseFormat format, const model::Architecture& architecture) {
  if (format != model::BaseFormat::fp8 || !has_experts(architecture)) return {};
  return fail(ErrorCode::unsupported, "--quantization", "experts in fp8 by transformers are not modelled");
}

std::optional<model::BaseFormat> format_named(std::string_view word) {
  for (const auto& [name, format] : kFormats) {
    if (name == word) return format;
  }
  return std::nullopt;
}

std::string method_of(const LoadedModel& loaded) {
  const JsonObject config(loaded.quantisation, "quantization_config");
  return config.string("quant_method", "?").value_or("?");
}

std::optional<model::BaseFormat> format_of(const model::WeightScheme& scheme) {
  constexpr std::int64_t kBits = 4;
  constexpr std::int64_t kGroup = 128;
  constexpr std::int64_t kBlock = 128;
  const bool packed = scheme.format == model::WeightFormat::gptq || scheme.format == model::WeightFormat::awq;
  if (packed && (scheme.bits != kBits || scheme.group != kGroup)) return std::nullopt;
  if (scheme.format != model::WeightFormat::fp8) return format_named(scheme.name);
  if (scheme.block_rows != kBlock || scheme.block_columns != kBlock || scheme.static_inputs) return std::nullopt;
  return model::BaseFormat::fp8;
}

// What --quantization names, else what the model's own quantization_config says where it is one of those.
Expected<void> take_format(const Arguments& a, const LoadedModel& loaded, ServeSetup& setup) {
  if (a.has("--quantization")) {
    const std::string word = a.text("--quantization");
    const auto format = format_named(word);
    if (!format) {
      const bool other = kOtherMethods.find(" " + word + " ") != std::string_view::npos;
      if (other || model::quantisation_named(word) || model::is_gguf_mix(word))
        return not_in_this_version("--quantization", fmt::format("{} with transformers", word));
      return fail(ErrorCode::invalid_argument, "--quantization",
                  fmt::format("'{}' is not one of none, nf4, nf4-dq, fp4, int8, gptq, awq, fp8", word.substr(0, 40)));
    }
    setup.options.weights = *format;
    return check_format(*format, loaded.architecture);
  }
  if (!loaded.quantisation.is_object()) return {};
  const std::string method = method_of(loaded);
  const auto format = own_format(loaded);
  if (!format) {
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

std::string name_of(pt::AttentionImpl attention) {
  if (attention == pt::AttentionImpl::flash) return "flash";
  return attention == pt::AttentionImpl::eager ? "eager" : "sdpa";
}

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
                                   {"quantization", std::string(cli::name_of(o.weights))},
                                   {"attention", name_of(o.attention)},
                                   {"cache", a.text("--cache", "dynamic")}};
  if (a.has("--cache-config")) out.push_back({"cache_config", a.text("--cache-config")});
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

std::string_view name_of(model::BaseFormat format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "none";
}

Expected<model::BaseFormat> own_format(const LoadedModel& loaded) {
  if (!loaded.quantisation.is_object()) return model::BaseFormat::plain;
  const auto own = model::read_quantisation(JsonObject(loaded.quantisation, "quantization_config"));
  const auto format = own && own->rules.size() == 1 ? format_of(own->rules.front().scheme) : std::nullopt;
  if (!format)
    return fail(ErrorCode::unsupported, loaded.architecture.name,
                fmt::format("weights that are quantised with {} are not modelled with transformers",
                            own ? own->name : method_of(loaded)));
  if (auto checked = check_format(*format, loaded.architecture); !checked)
    return tl::unexpected<Error>(Error{ErrorCode::unsupported, checked.error().message, loaded.architecture.name});
  return *format;
}

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
