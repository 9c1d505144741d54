// A release as engines number them.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage::engines::serving {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const Version&) const = default;
};

// "0.19.0", "v0.7", "0.23.1rc1", "0.5.6.post2" (what follows the numbers does not count). Nothing: it is none.
std::optional<Version> read_version(std::string_view text);

// The same where somebody asked for it; fails with a line that names the engine and shows how `newest` is written.
Expected<Version> parse_version(std::string_view text, std::string_view where, std::string_view engine, Version newest);

std::string to_string(Version version);

}  // namespace ullage::engines::serving
