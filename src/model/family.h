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

// Builds from a parsed configuration: picks the family by `model_type`. Where the outer type is not known and wraps a
// text configuration (text_config, llm_config, language_config) whose type is, the text model alone is built and
// Architecture::notes says so. An unknown type is an error that names it and the nearest known ones; what
// check_parameters (limits.h) refuses is one, too.
Expected<Architecture> build_architecture(const Json& config, std::string_view where);

// Sets one field, "key=value" with a JSON value ("num_hidden_layers=4"; dots reach into nested objects, which are made
// where there are none). A text that is not JSON is taken as a string. On failure `config` may hold an empty object
// more.
Expected<void> set_field(Json& config, std::string_view assignment);

// Whether what is built depends on the field at `path` (dots as above), so that setting one that nothing reads can be
// said. Tries it: a list is no value of any field that is read. False where the configuration cannot be built.
bool reads_field(const Json& config, std::string_view path);

}  // namespace ullage::model
