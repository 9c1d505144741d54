#include "report/engine_rules.h"

#include <fmt/core.h>

#include "base/json.h"
#include "report/json_parts.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

using engines::vllm::Rule;

constexpr std::size_t kId = 26;
constexpr std::size_t kReleases = 22;
constexpr std::size_t kValue = 22;

Message releases(const Rule& rule) {
  const bool since = !rule.since.empty();
  const bool before = !rule.before.empty();
  const Text key = since ? (before ? Text::releases_between : Text::releases_since)
                         : (before ? Text::releases_before : Text::releases_all);
  return {key, {{"since", rule.since}, {"before", rule.before}}};
}

std::string value_text(const Rule& rule) {
  if (rule.low == rule.high) return fmt::format("{:g}", rule.value);
  return fmt::format("{:g} ({:g}..{:g})", rule.value, rule.low, rule.high);
}

Json rule_json(const Rule& rule) {
  return {{"id", rule.id},
          {"item", rule.item},
          {"since", or_null(rule.since)},
          {"before", or_null(rule.before)},
          {"limits", or_null(rule.limits)},
          {"value", rule.value},
          {"range", Json::array({rule.low, rule.high})},
          {"kind", engines::vllm::name_of(rule.kind)},
          {"source", rule.source}};
}

void write_rule(TextPage& page, const Rule& rule) {
  const std::string when = page.say(releases(rule));
  const std::string limits = rule.limits.empty() ? std::string() : "; " + rule.limits;
  page.line("  " + pad_right(rule.id, kId) + pad_right(when, kReleases) + pad_right(value_text(rule), kValue) +
            std::string(engines::vllm::name_of(rule.kind)));
  page.paragraph(page.toned(rule.source + limits, TextPage::Tone::faint), 4);
}

}  // namespace

std::string engine_rules_json(const std::vector<Rule>& rules) {
  Json rows = Json::array();
  for (const Rule& rule : rules) rows.push_back(rule_json(rule));
  Json engines = Json::array();
  engines.push_back({{"name", "vllm"}, {"rules", std::move(rows)}});
  const Json out = {{"schema", "ullage.engines/1"}, {"command", "engines"}, {"engines", std::move(engines)}};
  return printed(out);
}

std::string engine_rules_text(const std::vector<Rule>& rules, const TextStyle& style) {
  TextPage page(style);
  const bool quiet = style.detail == Detail::quiet;
  std::string item;
  for (const Rule& rule : rules) {
    if (quiet) {
      page.line(rule.id);
      continue;
    }
    if (rule.item != item) {
      if (!item.empty()) page.line();
      page.line(page.toned("vllm " + rule.item, TextPage::Tone::strong));
    }
    item = rule.item;
    write_rule(page, rule);
  }
  if (quiet) return page.take();
  page.line();
  page.paragraph(
      page.say(Message{Text::engines_count,
                       {{"count", static_cast<std::int64_t>(rules.size())}, {"engine", std::string("vLLM")}}}),
      0);
  return page.take();
}

}  // namespace ullage::report
