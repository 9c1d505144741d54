#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

namespace ullage {
namespace {

constexpr std::size_t kCompared = 96;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kCompared);
  b = b.substr(0, kCompared);
  std::array<std::size_t, kCompared + 1> row{};
  std::iota(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(b.size()) + 1, std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest_names(std::string_view wanted, std::span<const std::string_view> names,
                                       std::size_t most) {
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (std::string_view name : names) {
    std::size_t distance = edit_distance(wanted, name);
    if (wanted.size() >= 3 && contains(name, wanted)) distance = std::min<std::size_t>(distance, 2);
    if (distance <= std::max<std::size_t>(2, wanted.size() / 3)) found.emplace_back(distance, name);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > most) found.resize(most);
  std::vector<std::string> out;
  out.reserve(found.size());
  for (const auto& entry : found) out.emplace_back(entry.second);
  return out;
}

std::string did_you_mean(std::span<const std::string> names) {
  if (names.empty()) return {};
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text + "?";
}

}  // namespace ullage
