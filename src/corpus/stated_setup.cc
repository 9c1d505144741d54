#include "corpus/stated_setup.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "base/lines.h"
#include "data/stated_setups.h"

namespace ullage::corpus {
namespace {

constexpr std::int64_t kMostUnit = std::int64_t{1} << 50;  // bytes of a unit

// "unit": {"key": …, "taken": bytes, "perhaps": as many or more}.
Expected<OpenUnit> parse_unit(const JsonObject& row) {
  const Json* json = row.find("unit");
  if (json == nullptr) return OpenUnit{};
  const JsonObject unit(*json, row.where("unit"));
  const auto key = unit.string("key", "");
  const auto taken = unit.integer("taken", 1, kMostUnit);
  const auto perhaps = unit.integer("perhaps", 1, kMostUnit);
  if (!key || key->empty() || !taken || !perhaps || *perhaps < *taken)
    return fail(ErrorCode::malformed, row.where("unit"),
                "expected a key, and bytes taken, and perhaps as many or more");
  return OpenUnit{*key, static_cast<double>(*perhaps) / static_cast<double>(*taken)};
}

Expected<StatedSetup> parse_row(std::string_view line, const std::string& where) {
  const auto json = parse_json(line, where);
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, where);
  auto args = row.strings("args");
  if (!args) return tl::unexpected<Error>(args.error());
  auto unit = parse_unit(row);
  if (!unit) return tl::unexpected<Error>(unit.error());
  StatedSetup out;
  out.unit = *std::move(unit);
  out.label = row.string("label", "").value_or("");
  out.source = row.string("source", "").value_or("");
  out.needs = row.string("needs", "").value_or("");
  out.args = *std::move(args);
  out.inferred = row.string("kind", "").value_or("") == "inferred";
  out.says = row.string("says", "").value_or("");
  if (out.label.empty() && out.source.empty())
    return fail(ErrorCode::malformed, row.where("label"), "missing; expected a label or a source");
  if (out.says.empty()) return fail(ErrorCode::malformed, row.where("says"), "missing; expected what says so");
  if (out.args.empty() ? out.unit.key.empty() : !out.args.front().starts_with("--"))
    return fail(ErrorCode::malformed, row.where("args"), "expected options");
  if (!out.needs.empty() && !out.needs.starts_with("--"))
    return fail(ErrorCode::malformed, row.where("needs"), "expected an option");
  return out;
}

bool holds_for(const StatedSetup& setup, const Case& entry) {
  const bool meant = setup.needs.empty() || option_of(entry, std::string_view(setup.needs).substr(2));
  return meant && (setup.label.empty() || setup.label == entry.engine) &&
         (setup.source.empty() || setup.source == entry.source);
}

bool leaves_open(const OpenUnit& unit, const Case& entry) {
  return !unit.key.empty() && std::any_of(entry.expect.begin(), entry.expect.end(),
                                          [&](const Quantity& quantity) { return quantity.key == unit.key; });
}

}  // namespace

Expected<std::vector<StatedSetup>> parse_stated_setups(std::string_view lines) {
  std::vector<StatedSetup> out;
  std::optional<Error> error;
  for_each_line(lines, [&](std::string_view line) {
    if (error) return;
    auto row = parse_row(line, fmt::format("stated_setups: line {}", out.size() + 1));
    if (row) out.push_back(*std::move(row));
    else error = row.error();
  });
  if (error) return tl::unexpected<Error>(*error);
  return out;
}

// A test reads the built-in rows, so they parse.
std::vector<StatedSetup> stated_setups() {
  return parse_stated_setups(data::stated_setups()).value_or(std::vector<StatedSetup>{});
}

std::vector<std::size_t> add_stated(const Case& entry, std::span<const StatedSetup> setups,
                                    std::vector<std::string>& args) {
  std::vector<std::size_t> used;
  Case asked = entry;
  for (std::size_t i = 0; i < setups.size(); ++i) {
    if (!holds_for(setups[i], entry)) continue;
    const std::vector<std::string>& words = setups[i].args;
    const std::size_t before = asked.args.size();
    for (std::size_t at = 0; at < words.size();) {
      std::size_t end = at + 1;
      while (end < words.size() && !words[end].starts_with("--")) ++end;
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last = words.begin() + static_cast<std::ptrdiff_t>(end);
      if (!option_of(asked, std::string_view(words[at]).substr(2))) asked.args.insert(asked.args.end(), first, last);
      at = end;
    }
    if (asked.args.size() > before || leaves_open(setups[i].unit, entry)) used.push_back(i);
  }
  args.insert(args.end(), asked.args.begin() + static_cast<std::ptrdiff_t>(entry.args.size()), asked.args.end());
  return used;
}

}  // namespace ullage::corpus
