// The families that are known: how a configuration becomes an Architecture, and the forward pass of each.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "model/architecture.h"
#include "model/modules.h"

namespace ullage::model {

struct Family {
  std::string_view model_type;  // as configurations call it
  Expected<Architecture> (*build)(const JsonObject& config);
  Output (*forward)(Modules& modules, const Architecture& architecture, Batch batch);
};

// All families, in a fixed order. A family is a file in families/ and a row here.
std::span<const Family> families();

// The family of that model_type, or nullptr.
const Family* find_family(std::string_view model_type);

// Builds from a parsed configuration: picks the family by `model_type` (of the nested text configuration where there
// is one). An unknown type is an error that names it and the nearest known ones.
Expected<Architecture> build_architecture(const Json& config, std::string_view where);

// Sets one field, "key=value" with a JSON value ("num_hidden_layers=4"; dots reach into nested objects). A text that
// is not JSON is taken as a string.
Expected<void> set_field(Json& config, std::string_view assignment);

}  // namespace ullage::model
