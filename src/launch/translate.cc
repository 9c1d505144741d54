#include "launch/translate.h"

#include <fmt/core.h>

#include "base/json.h"

namespace ullage::launch {
namespace {

Expected<Json> object_of(const std::string& text, const std::string& flag) {
  auto json = parse_json(text, flag);
  if (!json) return json;
  if (json->is_object()) return json;
  return fail(ErrorCode::malformed, flag, fmt::format("'{}' is no JSON object", excerpt(text)));
}

// Fields of the model's configuration.
Expected<void> set_fields(const std::string& text, const std::string& flag, Launch& launch) {
  const auto json = object_of(text, flag);
  if (!json) return tl::unexpected<Error>(json.error());
  for (const auto& [key, value] : json->items()) launch.options.push_back({"--set", key + "=" + dumped(value)});
  return {};
}

// vLLM's compilation configuration: batches that graphs are captured for, or that none are.
// Source: vllm/config/compilation.py; docs.vllm.ai, design/cuda_graphs and design/optimization_levels.
Expected<void> compilation(const std::string& text, Launch& launch) {
  constexpr std::string_view kFlag = "--compilation-config";
  const auto json = parse_json(text, kFlag);
  if (!json) return tl::unexpected<Error>(json.error());
  if (json->is_number_integer()) return {};  // a level alone
  if (!json->is_object())
    return fail(ErrorCode::malformed, std::string(kFlag), fmt::format("'{}' is no JSON object", excerpt(text)));
  if (const auto sizes = json->find("cudagraph_capture_sizes"); sizes != json->end() && sizes->is_array()) {
    std::string list;
    for (const Json& size : *sizes) list += (list.empty() ? "" : ",") + dumped(size);
    if (!list.empty()) set_option(launch, "--cudagraph-capture-sizes", list);
  }
  const auto mode = json->find("cudagraph_mode");
  if (mode != json->end() && (*mode == "NONE" || *mode == 0)) set_option(launch, "--enforce-eager", "");
  for (const char* key : {"max_cudagraph_capture_size", "max_capture_size"}) {
    if (json->contains(key))
      launch.uncounted.push_back({fmt::format("{}.{}", kFlag, key), dumped((*json)[key]), false, {}});
  }
  return {};
}

// "image=4,video=0", as releases before JSON took it.
std::string limits_of(const std::string& value) {
  if (value.empty() || value.find('{') != std::string::npos) return value;
  Json out = Json::object();
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return value;
    auto number = parse_json(item.substr(equals + 1), "limit");
    out[std::string(item.substr(0, equals))] = number ? *std::move(number) : Json();
  }
  return dumped(out);
}

Json value_of(const std::string& text) {
  auto json = parse_json(text, "value");
  return json ? *std::move(json) : Json(text);
}

Expected<void> translate_vllm(const GivenFlag& given, Gathered& gathered, Launch& launch) {
  const std::string& name = given.flag.name;
  const std::string& value = given.value;
  if (name == "--max-model-len") set_option(launch, name, value == "auto" || value == "-1" ? "max" : value);
  else if (name == "--limit-mm-per-prompt") set_option(launch, name, limits_of(value));
  else if (name == "--language-model-only" && !given.flag.off)
    set_option(launch, "--limit-mm-per-prompt", R"({"image":0,"video":0,"audio":0})");
  else if (name == "--rope-theta") launch.options.push_back({"--set", "rope_theta=" + value});
  else if (name == "--rope-scaling") launch.options.push_back({"--set", "rope_scaling=" + value});
  else if (name == "--hf-overrides") return set_fields(value, name, launch);
  else if (name == "--compilation-config") return compilation(value, launch);
  else if (name == "--optimization-level" && value == "0") set_option(launch, "--enforce-eager", "");
  else if (name == "--speculative-model" || name == "--spec-model")
    gathered.speculative[value == "[ngram]" ? "method" : "model"] = value == "[ngram]" ? "ngram" : value;
  else if (name == "--spec-method") gathered.speculative["method"] = value;
  else if (name == "--num-speculative-tokens" || name == "--spec-tokens")
    gathered.speculative["num_speculative_tokens"] = value_of(value);
  return {};
}

}  // namespace

Expected<void> translate(const GivenFlag& given, Gathered& gathered, Launch& launch) {
  const std::string& name = given.flag.name;
  if (name == "--model" || name == "--model-path") {
    launch.model = given.value;
    return {};
  }
  switch (launch.engine) {
    case Engine::vllm: return translate_vllm(given, gathered, launch);
    case Engine::sglang:
      if (name == "--json-model-override-args") return set_fields(given.value, name, launch);
      return {};
    case Engine::tensorrt_llm: return {};
  }
  return {};
}

void gather_dotted(const GivenFlag& given, Gathered& gathered) {
  Json* at = nullptr;
  for (auto& [name, json] : gathered.dotted) {
    if (name == given.flag.name) at = &json;
  }
  if (at == nullptr) at = &gathered.dotted.emplace_back(given.flag.name, Json::object()).second;
  std::string_view path = given.path;
  for (;;) {
    const std::size_t dot = path.find('.');
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  *at = value_of(given.value);
}

Expected<void> translate_gathered(const Gathered& gathered, Launch& launch) {
  Gathered none;
  for (const auto& [name, json] : gathered.dotted) {
    const auto flag = find_flag(launch.engine, name);
    if (!flag) continue;
    const GivenFlag whole{*flag, {}, dumped(json), {}};
    if (flag->role == Role::option) set_option(launch, flag->option, whole.value);
    if (flag->role != Role::translated) continue;
    if (auto done = translate(whole, none, launch); !done) return done;
  }
  if (!gathered.speculative.is_null()) set_option(launch, "--speculative-config", dumped(gathered.speculative));
  return {};
}

}  // namespace ullage::launch
