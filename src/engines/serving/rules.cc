#include "engines/serving/rules.h"

#include <fmt/core.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/lines.h"

namespace ullage::engines::serving {
namespace {

// Beyond any card.
constexpr std::int64_t kMostMib = 10'000'000;

constexpr std::string_view kWhere = "data/engines";

Expected<RuleKind> kind_of(const JsonObject& row) {
  const auto text = row.string("kind", "documented");
  if (!text) return tl::unexpected<Error>(text.error());
  if (*text == "documented") return RuleKind::documented;
  if (*text == "derived") return RuleKind::derived;
  if (*text == "measured fit") return RuleKind::measured_fit;
  if (*text == "guess") return RuleKind::guess;
  return fail(ErrorCode::malformed, row.where("kind"), "expected documented, derived, measured fit or guess");
}

void add_word(std::string& list, const std::string& word) { list += (list.empty() ? "" : ", ") + word; }

std::string limits_of(const JsonObject& row) {
  std::string out;
  for (const std::string_view key : {"architecture", "family"}) {
    if (row.has(key)) add_word(out, row.string(key, "").value_or(""));
  }
  if (const auto gib = row.integer("least_gib", 0, 0, 10'000).value_or(0); gib > 0)
    add_word(out, fmt::format(">= {} GiB", gib));
  if (row.boolean("mixture", false).value_or(false)) add_word(out, "experts");
  if (const auto mib = row.integer("least_mib", 0, 0, kMostMib).value_or(0); mib > 0)
    add_word(out, fmt::format(">= {} MiB", mib));
  if (row.has("except")) add_word(out, "!= " + row.string("except", "").value_or(""));
  if (const auto tp = row.integer("least_tp", 1, 1, 1024).value_or(1); tp > 1)
    add_word(out, fmt::format("tp >= {}", tp));
  if (const auto pp = row.integer("least_pp", 1, 1, 1024).value_or(1); pp > 1)
    add_word(out, fmt::format("pp >= {}", pp));
  return out;
}

Expected<Rule> read_rule(const JsonObject& row) {
  Rule out;
  const auto value = row.number("value", 0);
  if (!value) return tl::unexpected<Error>(value.error());
  out.value = *value;
  out.low = row.number("low", *value).value_or(*value);
  out.high = row.number("high", *value).value_or(*value);
  const auto kind = kind_of(row);
  if (!kind) return tl::unexpected<Error>(kind.error());
  out.kind = *kind;
  out.id = row.string("id", "").value_or("");
  out.item = row.string("item", "").value_or("");
  out.source = row.string("source", "").value_or("");
  out.since = row.string("since", "").value_or("");
  out.before = row.string("before", "").value_or("");
  out.limits = limits_of(row);
  if (!row.contains("value") || out.id.empty() || out.item.empty() || out.source.empty())
    return fail(ErrorCode::malformed, row.where("id"), "a rule has an id, an item, a value and a source");
  return out;
}

Expected<bool> fits_version(const JsonObject& row, Version version) {
  for (const std::string_view bound : {"since", "before"}) {
    if (!row.has(bound)) continue;
    const auto read = read_version(row.string(bound, "").value_or(""));
    if (!read) return fail(ErrorCode::malformed, row.where(bound), "expected a release such as 0.5.6");
    if (bound == "since" ? version < *read : version >= *read) return false;
  }
  return true;
}

bool fits_card(const JsonObject& row, const hardware::Gpu* gpu) {
  const std::string architecture = row.string("architecture", "").value_or("");
  const std::string except = row.string("except", "").value_or("");
  const std::int64_t least = row.integer("least_gib", 0, 0, 10'000).value_or(0);
  // Of what nvidia-smi reports, which engines ask for the card's size.
  const std::int64_t least_mib = row.integer("least_mib", 0, 0, kMostMib).value_or(0);
  if (architecture.empty() && except.empty() && least == 0 && least_mib == 0) return true;
  if (gpu == nullptr || gpu->usable_bytes < least * kGiB || gpu->memory_bytes < least_mib * kMiB) return false;
  if (!except.empty() && contains_ignoring_case(gpu->name, except)) return false;
  return contains_ignoring_case(gpu->architecture, architecture);
}

bool fits_layout(const JsonObject& row, const Surroundings& around) {
  const std::string family = row.string("family", "").value_or("");
  return (family.empty() || family == around.family) &&
         (around.mixture || !row.boolean("mixture", false).value_or(false)) &&
         around.tensor_parallel_size >= row.integer("least_tp", 1, 1, 1024).value_or(1) &&
         around.pipeline_parallel_size >= row.integer("least_pp", 1, 1, 1024).value_or(1);
}

// Calls visit(row) for each line that holds `text` until it says stop or fails.
template <class Visit>
Expected<void> for_each_row(std::string_view lines, std::string_view text, Visit visit) {
  std::optional<Error> error;
  bool stop = false;
  for_each_line(lines, [&](std::string_view line) {
    if (error || stop || line.find(text) == std::string_view::npos) return;
    const auto json = parse_json(line, kWhere);
    if (!json) {
      error = json.error();
      return;
    }
    const Expected<bool> stopped = visit(JsonObject(*json, std::string(kWhere)));
    if (!stopped) error = stopped.error();
    else stop = *stopped;
  });
  if (error) return tl::unexpected<Error>(*error);
  return {};
}

}  // namespace

Expected<Rule> parse_rule(std::string_view lines, std::string_view item, const Surroundings& around) {
  std::optional<Rule> found;
  const std::string text = fmt::format("\"{}\"", item);
  const auto read = for_each_row(lines, text, [&](const JsonObject& row) -> Expected<bool> {
    if (row.string("item", "").value_or("") != item) return false;
    const auto fits = fits_version(row, around.version);
    if (!fits) return tl::unexpected<Error>(fits.error());
    if (!*fits || !fits_card(row, around.gpu) || !fits_layout(row, around)) return false;
    auto rule = read_rule(row);
    if (!rule) return tl::unexpected<Error>(rule.error());
    found = std::move(*rule);
    return true;
  });
  if (!read) return tl::unexpected<Error>(read.error());
  if (found) return *found;
  return fail(ErrorCode::not_found, std::string(kWhere),
              fmt::format("no rule for {} in {}", item, to_string(around.version)));
}

std::string_view name_of(RuleKind kind) {
  switch (kind) {
    case RuleKind::documented: return "documented";
    case RuleKind::derived: return "derived";
    case RuleKind::measured_fit: return "measured fit";
    case RuleKind::guess: return "guess";
  }
  return "guess";
}

Expected<std::vector<Rule>> parse_rules(std::string_view lines) {
  std::vector<Rule> out;
  const auto read = for_each_row(lines, "", [&](const JsonObject& row) -> Expected<bool> {
    auto rule = read_rule(row);
    if (!rule) return tl::unexpected<Error>(rule.error());
    out.push_back(std::move(*rule));
    return false;
  });
  if (!read) return tl::unexpected<Error>(read.error());
  return out;
}

}  // namespace ullage::engines::serving
