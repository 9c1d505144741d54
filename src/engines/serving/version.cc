#include "engines/serving/version.h"

#include <fmt/core.h>

#include <array>
#include <charconv>

namespace ullage::engines::serving {

std::optional<Version> read_version(std::string_view text) {
  std::string_view rest = text;
  if (rest.substr(0, 1) == "v") rest.remove_prefix(1);
  std::array<int, 3> numbers{};
  std::size_t read = 0;
  while (read < numbers.size()) {
    const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), numbers[read]);
    if (fault != std::errc{} || numbers[read] < 0) break;
    ++read;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.substr(0, 1) != ".") break;
    rest.remove_prefix(1);
  }
  if (read < 2) return std::nullopt;
  return Version{numbers[0], numbers[1], numbers[2]};
}

Expected<Version> parse_version(std::string_view text, std::string_view where, std::string_view engine,
                                Version newest) {
  const auto read = read_version(text);
  if (read) return *read;
  return fail(
      ErrorCode::invalid_argument, std::string(where),
      fmt::format("'{}' is no release of {}; write one such as {}", text.substr(0, 40), engine, to_string(newest)));
}

std::string to_string(Version version) { return fmt::format("{}.{}.{}", version.major, version.minor, version.patch); }

}  // namespace ullage::engines::serving
