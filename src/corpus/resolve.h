// Paths into the JSON of a prediction: "peak.allocated_bytes", "components.parameters.bytes".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ullage::corpus {

// What stands at the path, or nullptr. Words are separated by dots; an entry of a list is named by its `name` or
// `device`. A key that itself contains dots is found as well.
const Json* at_path(const Json& document, std::string_view path);

// A number, or 1 and 0 for true and false.
std::optional<double> as_number(const Json& value);

// The number at the path; nothing where there is none, which includes null: not computed.
std::optional<double> number_at(const Json& document, std::string_view path);

// The value at the path as a text, as one would write it in an argument.
std::optional<std::string> text_at(const Json& document, std::string_view path);

}  // namespace ullage::corpus
