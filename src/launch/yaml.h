// Configuration files of engines: the part of YAML that they use, as PyYAML's safe loader reads it.
//
// libyaml parses; aliases and merge keys, which no engine's documentation shows, are refused, so that a small file
// cannot stand for a large one.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/json.h"

namespace ullage::launch {

inline constexpr std::size_t kMostYamlBytes = 256 * 1024;
inline constexpr int kMostYamlValues = 4096;

// The first document; an empty one is null. Plain words are what YAML 1.1 makes of them (yes is true, 010 is eight,
// 1e3 is a text); keys are texts, and of equal ones the last counts. `where` names the file in errors, which name the
// line: malformed, or unsupported for what is refused, or too_large.
Expected<Json> parse_yaml(std::string_view text, std::string_view where);

}  // namespace ullage::launch
