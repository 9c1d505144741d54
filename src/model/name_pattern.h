// Patterns by which quantisation configurations name modules.
#pragma once

#include <string_view>

namespace ullage::model {

// Whether all of `name` is what a glob describes: "*" stands for anything.
bool matches_glob(std::string_view glob, std::string_view name);

// Whether `name` begins with what a regular expression of a small kind describes: letters, ".", "\" before a sign,
// groups of alternatives and classes without ranges' exotica, each perhaps followed by "*", "+" or "?"; "^" and "$".
// Anything else, and a search that takes too long, is no match.
bool matches_regex(std::string_view regex, std::string_view name);

}  // namespace ullage::model
