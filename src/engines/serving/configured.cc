#include "engines/serving/configured.h"

namespace ullage::engines::serving {
namespace {

// What the configuration says of the text model, wherever it stands: wrappers nest it.
const Json* text_config(const Json& config) {
  const auto found = config.is_object() ? config.find("text_config") : config.end();
  return found != config.end() && found->is_object() ? &*found : nullptr;
}

// The factor of a form of positions, or of the one of its layers that see everything.
std::optional<double> factor_of(const Json& form) {
  if (!form.is_object()) return std::nullopt;
  const auto factor = form.find("factor");
  if (factor != form.end() && factor->is_number()) return factor->get<double>();
  const auto full = form.find("full_attention");
  return full != form.end() ? factor_of(*full) : std::nullopt;
}

}  // namespace

std::optional<DType> configured_dtype(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_string()) return parse_dtype(found->get_ref<const std::string&>());
  }
  const Json* text = text_config(config);
  return text != nullptr ? configured_dtype(*text) : std::nullopt;
}

double configured_stretch(const Json& config) {
  constexpr double kMostStretched = 1 << 20;
  if (!config.is_object()) return 1;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto form = config.find(key);
    const auto factor = form != config.end() ? factor_of(*form) : std::nullopt;
    if (factor && *factor >= 1 && *factor <= kMostStretched) return *factor;
  }
  const Json* text = text_config(config);
  return text != nullptr ? configured_stretch(*text) : 1;
}

}  // namespace ullage::engines::serving
