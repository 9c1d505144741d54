// Catalogues as text: one record a line, found without parsing the others.
#pragma once

#include <algorithm>
#include <string_view>

namespace ullage {

constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Negative, zero or positive, by unsigned bytes with A-Z read as a-z.
constexpr int compare_ignoring_case(std::string_view a, std::string_view b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const int difference =
        static_cast<unsigned char>(ascii_lower(a[i])) - static_cast<unsigned char>(ascii_lower(b[i]));
    if (difference != 0) return difference;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

// An empty `part` is in every text.
constexpr bool contains_ignoring_case(std::string_view text, std::string_view part) {
  for (std::size_t at = 0; at + part.size() <= text.size(); ++at) {
    if (compare_ignoring_case(text.substr(at, part.size()), part) == 0) return true;
  }
  return false;
}

// Calls visit(line) for every line of `text`, without its newline; empty lines are passed over.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The line whose key_of(line) equals `key`, ignoring case; empty when there is none. The lines must be sorted by key,
// ignoring case. Looks at about log2(lines) of them.
template <class KeyOf>
std::string_view find_sorted_line(std::string_view text, std::string_view key, KeyOf key_of) {
  while (!text.empty()) {
    const std::size_t before = text.substr(0, text.size() / 2).rfind('\n');
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const int order = compare_ignoring_case(key, key_of(line));
    if (order == 0) return line;
    text = order < 0 ? text.substr(0, begin) : text.substr(std::min(end + 1, text.size()));
  }
  return {};
}

// What stands between `before` and the next quotation mark, when `line` begins with `before`; else empty. For keys
// that are known to hold no escapes.
constexpr std::string_view quoted_after(std::string_view line, std::string_view before) {
  if (!line.starts_with(before)) return {};
  line.remove_prefix(before.size());
  return line.substr(0, line.find('"'));
}

}  // namespace ullage
