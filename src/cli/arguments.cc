#include "cli/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/bytes.h"

namespace ullage::cli {

bool Arguments::has(std::string_view option) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& entry) { return entry.first == option; });
}

std::string Arguments::text(std::string_view option, std::string_view fallback) const {
  for (const auto& [name, value] : given_) {
    if (name == option) return value;
  }
  return std::string(fallback);
}

std::vector<std::string> Arguments::all(std::string_view option) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : given_) {
    if (name == option) out.push_back(value);
  }
  return out;
}

Expected<std::int64_t> Arguments::integer(std::string_view option, std::int64_t fallback, std::int64_t low,
                                          std::int64_t high) const {
  if (!has(option)) return fallback;
  const std::string given = text(option);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc{} || end != given.data() + given.size() || value < low || value > high) {
    return fail(ErrorCode::invalid_argument, std::string(option),
                fmt::format("'{}' is not a whole number from {} to {}", given.substr(0, 60), low, high));
  }
  return value;
}

Expected<double> Arguments::number(std::string_view option, double fallback) const {
  if (!has(option)) return fallback;
  const std::string given = text(option);
  char* end = nullptr;
  const double value = std::strtod(given.c_str(), &end);
  if (given.empty() || *end != '\0' || !std::isfinite(value) || value < 0) {
    return fail(ErrorCode::invalid_argument, std::string(option),
                fmt::format("'{}' is not a number of 0 or more", given.substr(0, 60)));
  }
  return value;
}

Expected<std::optional<std::int64_t>> Arguments::bytes(std::string_view option) const {
  if (!has(option)) return std::nullopt;
  return parse_bytes(text(option), option).map([](std::int64_t bytes) { return std::optional(bytes); });
}

void Arguments::remove(std::string_view option) {
  std::erase_if(given_, [&](const auto& entry) { return entry.first == option; });
}

void Arguments::replace(std::string_view option, std::string value) {
  remove(option);
  add(option, std::move(value));
}

void Arguments::replace_with(const Arguments& others) {
  for (const auto& entry : others.given_) remove(entry.first);
  given_.insert(given_.end(), others.given_.begin(), others.given_.end());
}

tl::unexpected<Error> not_in_this_version(std::string where, std::string_view what) {
  return fail(ErrorCode::unsupported, std::move(where),
              fmt::format("{}{}is not in this version", what, what.empty() ? "" : " "));
}

}  // namespace ullage::cli
