// The names closest to one that was mistyped.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage {

// Levenshtein's, ignoring case, of their first 96 characters.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Up to `most` of `names` whose edit distance (Levenshtein, case-insensitive) to `wanted` is small enough to be a
// slip of the pen, closest first. Work is bounded: names and `wanted` are compared in their first 96 characters.
std::vector<std::string> nearest_names(std::string_view wanted, std::span<const std::string_view> names,
                                       std::size_t most = 3);

// "did you mean A, B or C?", or an empty text without names.
std::string did_you_mean(std::span<const std::string> names);

}  // namespace ullage
