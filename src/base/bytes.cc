#include "base/bytes.h"

#include <fmt/core.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace ullage {
namespace {

struct Scale {
  const char* suffix;
  double factor;
};

constexpr std::array<Scale, 4> kBinary{{{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"B", 1.0}}};
constexpr std::array<Scale, 4> kDecimal{{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1.0}}};

std::string scaled(std::int64_t bytes, const std::array<Scale, 4>& scales) {
  const double value = static_cast<double>(bytes);
  for (const Scale& scale : scales) {
    // A value shows in the largest unit of which it has at least a hundredth.
    if (scale.factor == 1.0) break;
    if (std::fabs(value) >= scale.factor * (scale.factor > 1e8 ? 0.1 : 1.0)) {
      return fmt::format("{:.2f} {}", value / scale.factor, scale.suffix);
    }
  }
  return fmt::format("{} B", bytes);
}

double unit_factor(std::string_view suffix) {
  static constexpr std::array<Scale, 17> kSuffixes{{
      {"", 1.0},
      {"b", 1.0},
      {"k", 1024.0},
      {"kib", 1024.0},
      {"kb", 1e3},
      {"m", 1048576.0},
      {"mib", 1048576.0},
      {"mb", 1e6},
      {"g", 1073741824.0},
      {"gib", 1073741824.0},
      {"gb", 1e9},
      {"t", 1099511627776.0},
      {"tib", 1099511627776.0},
      {"tb", 1e12},
      {"byte", 1.0},
      {"bytes", 1.0},
      {"ki", 1024.0},
  }};
  for (const Scale& entry : kSuffixes) {
    if (suffix == entry.suffix) return entry.factor;
  }
  return 0;
}

}  // namespace

std::string format_bytes(std::int64_t bytes, Unit unit) {
  switch (unit) {
    case Unit::gib: return scaled(bytes, kBinary);
    case Unit::gb: return scaled(bytes, kDecimal);
    case Unit::mib: return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
    case Unit::bytes: return fmt::format("{} B", bytes);
  }
  return {};
}

Expected<std::int64_t> parse_bytes(std::string_view text, std::string_view where) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  std::string suffix;
  for (const char* c = end; *c != '\0'; ++c) {
    if (*c != ' ') suffix += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  const double factor = suffix.empty() && value != 0 ? 0 : unit_factor(suffix);
  if (end == copy.c_str() || factor == 0 || !std::isfinite(value) || value < 0 || value * factor >= 9.2e18) {
    return fail(ErrorCode::invalid_argument, std::string(where),
                fmt::format("'{}' is not a size; write a number with a unit, such as 79.1GiB or 80GB", text));
  }
  return static_cast<std::int64_t>(std::llround(value * factor));
}

Expected<Unit> parse_unit(std::string_view text, std::string_view where) {
  if (text == "GiB") return Unit::gib;
  if (text == "GB") return Unit::gb;
  if (text == "MiB") return Unit::mib;
  if (text == "bytes") return Unit::bytes;
  return fail(ErrorCode::invalid_argument, std::string(where),
              fmt::format("'{}' is not a unit; choose GiB, GB, MiB or bytes", text));
}

}  // namespace ullage
