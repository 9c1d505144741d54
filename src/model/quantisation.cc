#include "model/quantisation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "model/name_pattern.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kFp8Block = 128;  // DeepSeek's, which transformers' fp8 follows

WeightScheme fp8_blocks() {
  return {.format = WeightFormat::fp8, .name = "fp8", .bits = 8, .block_rows = kFp8Block, .block_columns = kFp8Block};
}

WeightScheme bnb(std::string name, bool twice) {
  return {.format = WeightFormat::bnb_4bit, .name = std::move(name), .bits = 4, .group = 64, .double_quantised = twice};
}

WeightScheme in_groups(WeightFormat format, std::string name, std::int64_t bits, std::int64_t group) {
  return {.format = format, .name = std::move(name), .bits = bits, .group = group};
}

struct Named {
  std::string_view word;
  WeightScheme (*make)();
};

const std::array kNamed{
    Named{"fp8", [] { return WeightScheme{.format = WeightFormat::fp8, .name = "fp8", .bits = 8}; }},
    Named{"fp8-block", fp8_blocks},
    Named{"int8", [] { return WeightScheme{.format = WeightFormat::int8_rows, .name = "int8", .bits = 8}; }},
    Named{"nf4", [] { return bnb("nf4", false); }},
    Named{"nf4-dq", [] { return bnb("nf4-dq", true); }},
    Named{"fp4", [] { return bnb("fp4", false); }},
    Named{"awq", [] { return in_groups(WeightFormat::awq, "awq", 4, 128); }},
    Named{"gptq", [] { return in_groups(WeightFormat::gptq, "gptq", 4, 128); }},
    Named{"int4", [] { return in_groups(WeightFormat::packed_int, "int4", 4, 128); }},
    Named{"nvfp4", [] { return in_groups(WeightFormat::nvfp4, "nvfp4", 4, 16); }},
    Named{"mxfp4", [] { return in_groups(WeightFormat::mxfp4, "mxfp4", 4, 32); }},
};

Quantisation with(std::string name, WeightScheme scheme) {
  Quantisation out;
  out.name = std::move(name);
  out.rules.push_back({{}, std::move(scheme)});
  return out;
}

// --- quantization_config ---------------------------------------------------------------------------------------------

Expected<NamePatterns> read_patterns(const JsonObject& config, std::string_view key) {
  return config.strings(key).map([](std::vector<std::string> list) { return NamePatterns{std::move(list)}; });
}

Expected<Quantisation> read_fp8(const JsonObject& config) {
  WeightScheme scheme = fp8_blocks();
  if (const Json* block = config.find("weight_block_size"); block != nullptr && block->is_array()) {
    const auto at = [&](std::size_t i) {
      const bool fits = block->size() == 2 && (*block)[i].is_number_integer();
      return fits ? (*block)[i].get<std::int64_t>() : std::int64_t{0};
    };
    scheme.block_rows = at(0);
    scheme.block_columns = at(1);
    if (scheme.block_rows < 1 || scheme.block_columns < 1)
      return fail(ErrorCode::malformed, config.where("weight_block_size"), "is no pair of rows and columns");
  } else {
    scheme.block_rows = scheme.block_columns = 0;
  }
  scheme.static_inputs = config.string("activation_scheme", "dynamic").value_or("") == "static";
  // ignored_layers: as vLLM's fp8 configuration calls them.
  const char* key = config.has("ignored_layers") ? "ignored_layers" : "modules_to_not_convert";
  return read_patterns(config, key).map([&](NamePatterns ignored) {
    Quantisation out = with("fp8", std::move(scheme));
    out.ignored = std::move(ignored);
    return out;
  });
}

Expected<Quantisation> read_bitsandbytes(const JsonObject& config) {
  const bool four = config.boolean("load_in_4bit", false).value_or(false);
  const std::string type = config.string("bnb_4bit_quant_type", "fp4").value_or("fp4");
  const bool twice = config.boolean("bnb_4bit_use_double_quant", false).value_or(false);
  if (type != "nf4" && type != "fp4")
    return fail(ErrorCode::unsupported, config.where("bnb_4bit_quant_type"), "is not modelled; known are nf4 and fp4");
  WeightScheme scheme{.format = WeightFormat::int8_rows, .name = "int8", .bits = 8};
  if (four) scheme = bnb(twice ? type + "-dq" : type, twice);
  return read_patterns(config, "llm_int8_skip_modules").map([&](NamePatterns ignored) {
    Quantisation out = with("bitsandbytes", std::move(scheme));
    out.ignored = std::move(ignored);
    return out;
  });
}

Expected<WeightScheme> read_packed(const JsonObject& config, WeightFormat format, std::string name) {
  const auto bits = config.integer("bits", 4, 2, 8);
  const auto group = config.integer("group_size", 128, -1, 1 << 20);
  if (!bits || !group) return tl::unexpected<Error>(bits ? group.error() : bits.error());
  if (*bits != 2 && *bits != 3 && *bits != 4 && *bits != 8)
    return fail(ErrorCode::unsupported, config.where("bits"), "is not modelled; known are 2, 3, 4 and 8");
  if (*group == 0) return fail(ErrorCode::malformed, config.where("group_size"), "is 0; -1 stands for a whole row");
  return in_groups(format, std::move(name), *bits, std::max<std::int64_t>(0, *group));
}

Expected<Quantisation> read_grouped(const JsonObject& config, WeightFormat format, const std::string& name,
                                    std::string_view skip) {
  const auto scheme = read_packed(config, format, name);
  if (!scheme) return tl::unexpected<Error>(scheme.error());
  return read_patterns(config, skip).map([&](NamePatterns ignored) {
    Quantisation out = with(name, *scheme);
    out.ignored = std::move(ignored);
    // AutoGPTQ up to the version that wrote this key gave every layer a bias.
    out.rules.front().scheme.zero_biases = config.contains("model_file_base_name");
    return out;
  });
}

// One of config_groups: weights by num_bits, type and strategy.
Expected<WeightScheme> read_group(const JsonObject& group, bool packed, bool modelopt) {
  const auto weights = group.object("weights");
  if (!weights) return tl::unexpected<Error>(weights.error());
  const auto bits = weights->integer("num_bits", 8, 1, 16);
  const auto size = weights->integer("group_size", 0, -1, 1 << 20);
  if (!bits || !size) return tl::unexpected<Error>(bits ? size.error() : bits.error());
  const std::string type = weights->string("type", "int").value_or("int");
  const std::string strategy = weights->string("strategy", "tensor").value_or("tensor");
  const Json* inputs = group.find("input_activations");
  const bool fixed =
      inputs != nullptr && inputs->is_object() && inputs->contains("dynamic") && (*inputs)["dynamic"] == false;
  if (type == "float" && *bits == 4) {
    const bool micro = *size == 32 || group.string("format", "").value_or("").starts_with("mxfp4");
    WeightScheme out =
        micro ? in_groups(WeightFormat::mxfp4, "mxfp4", 4, 32) : in_groups(WeightFormat::nvfp4, "nvfp4", 4, 16);
    out.static_inputs = fixed || modelopt;
    return out;
  }
  if (type == "float" && *bits == 8) {
    WeightScheme out{.format = WeightFormat::fp8, .name = "fp8", .bits = 8, .by_row = strategy == "channel"};
    out.scales_in_model_dtype = !modelopt;
    out.static_inputs = fixed;
    return out;
  }
  if (type == "int" && *bits == 8 && !packed) {
    WeightScheme out{.format = WeightFormat::int8_rows, .name = "int8", .bits = 8};
    out.scales_in_model_dtype = true;
    return out;
  }
  if (type == "int" && (*bits == 4 || *bits == 8)) {
    WeightScheme out =
        in_groups(WeightFormat::packed_int, *bits == 4 ? "int4" : "int8", *bits, std::max<std::int64_t>(0, *size));
    out.zeros = !weights->boolean("symmetric", true).value_or(true);
    return out;
  }
  return fail(ErrorCode::unsupported, weights->where("num_bits"),
              fmt::format("weights of {} bits and type {} are not modelled", *bits, excerpt(type)));
}

Expected<Quantisation> read_groups(const JsonObject& config, const std::string& method) {
  const bool modelopt = method == "modelopt";
  const bool packed = config.string("format", "").value_or("").find("pack") != std::string::npos;
  Quantisation out;
  out.name = method;
  const auto groups = config.object("config_groups");
  if (!groups) return tl::unexpected<Error>(groups.error());
  for (const auto& [key, value] : groups->json().items()) {
    const JsonObject group(value, groups->where(key));
    auto scheme = read_group(group, packed, modelopt);
    if (!scheme) return tl::unexpected<Error>(scheme.error());
    auto targets = read_patterns(group, "targets");
    if (!targets) return tl::unexpected<Error>(targets.error());
    std::vector<std::string>& names = targets->patterns;
    if (std::find(names.begin(), names.end(), "Linear") != names.end()) names.clear();
    out.rules.push_back({*std::move(targets), *std::move(scheme)});
  }
  for (const std::string_view key : {"ignore", "exclude_modules"}) {
    auto ignored = read_patterns(config, key);
    if (!ignored) return tl::unexpected<Error>(ignored.error());
    out.ignored.patterns.insert(out.ignored.patterns.end(), ignored->patterns.begin(), ignored->patterns.end());
  }
  // These lists name the head where it stays as it is.
  out.head_too = true;
  return out;
}

Expected<Quantisation> read_mxfp4(const JsonObject& config) {
  return read_patterns(config, "modules_to_not_convert").map([](NamePatterns ignored) {
    Quantisation out;
    out.name = "mxfp4";
    // The experts alone.
    out.rules.push_back({{{"*experts*"}}, in_groups(WeightFormat::mxfp4, "mxfp4", 4, 32)});
    out.ignored = std::move(ignored);
    return out;
  });
}

// MLX's files have no method: bits and group_size alone, for the embedding too.
Expected<Quantisation> read_affine(const JsonObject& config) {
  return read_packed(config, WeightFormat::affine, "affine").map([](WeightScheme scheme) {
    Quantisation out = with("mlx", std::move(scheme));
    out.head_too = out.embeddings_too = true;
    return out;
  });
}

}  // namespace

// --- names -----------------------------------------------------------------------------------------------------------

bool NamePatterns::names(const std::string& module) const {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    if (pattern.empty()) return false;
    if (pattern.starts_with("re:")) return matches_regex(std::string_view(pattern).substr(3), module);
    if (pattern.find('*') != pattern.npos) return matches_glob(pattern, module) || matches_glob(pattern + ".*", module);
    if (module == pattern || module.starts_with(pattern + ".")) return true;
    const std::string inner = "." + pattern;
    return module.size() > inner.size() && (std::string_view(module).substr(module.size() - inner.size()) == inner ||
                                            module.find(inner + ".") != module.npos);
  });
}

std::string quantisation_names() {
  std::string out = "fp32, bf16, fp16";
  for (const Named& named : kNamed) out += fmt::format(", {}", named.word);
  return out;
}

Expected<Quantisation> quantisation_named(std::string_view word) {
  for (const std::string_view plain : {"fp32", "bf16", "fp16"}) {
    if (word == plain) return Quantisation{std::string(word), {}, {}, false, false};
  }
  for (const Named& named : kNamed) {
    if (named.word == word) return with(std::string(word), named.make());
  }
  return fail(ErrorCode::invalid_argument, "--quantization",
              fmt::format("'{}' is no way of storing weights; known are {} and llama.cpp's mixes such as Q4_K_M",
                          excerpt(word), quantisation_names()));
}

Expected<Quantisation> read_quantisation(const JsonObject& config) {
  const bool grouped = config.has("config_groups");
  const std::string method = config.string("quant_method", "").value_or("");
  if (method == "compressed-tensors" || method == "modelopt" || (method.empty() && grouped))
    return read_groups(config, method.empty() ? "modelopt" : method);
  if (method == "fp8" && !grouped) return read_fp8(config);
  if (method == "bitsandbytes") return read_bitsandbytes(config);
  if (method == "awq") return read_grouped(config, WeightFormat::awq, "awq", "modules_to_not_convert");
  if (method == "gptq" || method == "auto-round")
    return read_grouped(config, WeightFormat::gptq, method, "modules_to_not_convert");
  if (method == "mxfp4") return read_mxfp4(config);
  if (method.empty() && config.has("bits") && config.has("group_size")) return read_affine(config);
  const std::string algorithm = config.string("quant_algo", "").value_or("");
  return fail(ErrorCode::unsupported, config.where("quant_method"),
              fmt::format("'{}{}{}' is not modelled; name a way with --quantization", excerpt(method),
                          algorithm.empty() ? "" : " with ", excerpt(algorithm)));
}

}  // namespace ullage::model
