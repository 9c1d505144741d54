#include "plan/sweep.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace ullage::plan {
namespace {

constexpr std::size_t kShown = 80;  // of a text that is wrong

tl::unexpected<Error> wrong(std::string_view text, std::string_view what) {
  return fail(ErrorCode::invalid_argument, "--sweep",
              "'" + std::string(text.substr(0, kShown)) + "' " + std::string(what) +
                  "; write OPTION=A..B or OPTION=A,B,C, such as micro-batch=1..8");
}

std::string option_name(std::string_view written) {
  const std::size_t dashes = std::min(written.find_first_not_of('-'), written.size());
  std::string name = "--" + std::string(written.substr(dashes));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> values_between(std::int64_t first, std::int64_t last) {
  std::vector<std::string> out;
  if (last - first < kMostSteps) {
    for (std::int64_t value = first; value <= last; ++value) out.push_back(std::to_string(value));
    return out;
  }
  if (first == 0) out.emplace_back("0");
  for (std::int64_t value = std::max<std::int64_t>(first, 1); value < last; value *= 2) {
    out.push_back(std::to_string(value));
    if (value > last / 2) break;
  }
  out.push_back(std::to_string(last));
  return out;
}

}  // namespace

Expected<Sweep> parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return wrong(text, "has no '='");
  Sweep out;
  out.option = option_name(text.substr(0, equals));
  if (out.option.size() <= 2) return wrong(text, "names no option");
  std::string_view values = text.substr(equals + 1);
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    const auto first = whole_number(values.substr(0, dots));
    const auto last = whole_number(values.substr(dots + 2));
    if (!first || !last) return wrong(text, "is no range of whole numbers");
    if (*first > *last) return wrong(text, "runs backwards");
    out.values = values_between(*first, *last);
    return out;
  }
  while (true) {
    const std::size_t comma = std::min(values.find(','), values.size());
    if (comma == 0) return wrong(text, "has an empty value");
    out.values.emplace_back(values.substr(0, comma));
    if (out.values.size() > kMostValues) return wrong(text, "has more than 256 values");
    if (comma == values.size()) return out;
    values.remove_prefix(comma + 1);
  }
}

}  // namespace ullage::plan
