#include "model/family.h"

#include <fmt/core.h>

#include <array>

#include "base/nearest.h"
#include "model/families/gpt2.h"
#include "model/families/llama.h"
#include "model/families/torchvision.h"

namespace ullage::model {
namespace {

constexpr std::array kFamilies{
    Family{"llama", build_llama, forward_llama},
    Family{"mistral", build_mistral, forward_llama},
    Family{"gpt2", build_gpt2, forward_gpt2},
    Family{"torchvision", build_torchvision, forward_torchvision},
};

tl::unexpected<Error> unknown_type(const std::string& type, std::string where) {
  std::vector<std::string_view> known;
  for (const Family& family : families()) known.push_back(family.model_type);
  const std::vector<std::string> near = nearest_names(type, known);
  std::string list;
  for (const std::string_view name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  return fail(ErrorCode::unsupported, std::move(where),
              fmt::format("model type '{}' is not modelled; {}", type, near.empty() ? "known are " + list : did_you_mean(near)));
}

// The configuration that describes the text model: a nested one where the outer only wraps it.
const Json& text_config(const Json& config) {
  if (find_family(config.value("model_type", "")) != nullptr) return config;
  const auto nested = config.find("text_config");
  return nested != config.end() && nested->is_object() ? *nested : config;
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

Expected<Architecture> build_architecture(const Json& config, std::string_view where) {
  if (!config.is_object()) return fail(ErrorCode::malformed, std::string(where), "expected a JSON object with the model's configuration");
  const JsonObject whole(config, std::string(where));
  const auto type = whole.string("model_type", "");
  if (!type) return tl::unexpected<Error>(type.error());
  if (type->empty()) {
    return fail(ErrorCode::malformed, whole.where("model_type"), "missing; is this the configuration of a model?");
  }
  const Json& text = text_config(config);
  const JsonObject object(text, std::string(where));
  const Family* family = find_family(*type);
  if (family == nullptr) return unknown_type(*type, object.where("model_type"));
  return family->build(object);
}

Expected<void> set_field(Json& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail(ErrorCode::invalid_argument, "--set", fmt::format("'{}' is not KEY=VALUE", assignment));
  }
  Json* place = &config;
  std::string_view path = assignment.substr(0, equals);
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    place = &(*place)[std::string(path.substr(0, dot))];
    path = path.substr(dot + 1);
    if (!place->is_object()) return fail(ErrorCode::invalid_argument, "--set", fmt::format("'{}' leads into something that is no object", assignment));
  }
  const std::string text(assignment.substr(equals + 1));
  Json value = Json::parse(text, nullptr, false);
  (*place)[std::string(path)] = value.is_discarded() ? Json(text) : std::move(value);
  return {};
}

}  // namespace ullage::model
