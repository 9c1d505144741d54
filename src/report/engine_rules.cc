#include "report/engine_rules.h"

#include <fmt/core.h>

#include "base/json.h"
#include "report/json_parts.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

using engines::serving::Rule;

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
          {"kind", engines::serving::name_of(rule.kind)},
          {"source", rule.source}};
}

void write_rule(TextPage& page, const Rule& rule) {
  const std::string when = page.say(releases(rule));
  const std::string limits = rule.limits.empty() ? std::string() : "; " + rule.limits;
  page.line("  " + pad_right(rule.id + " ", kId) + pad_right(when, kReleases) + pad_right(value_text(rule), kValue) +
            std::string(engines::serving::name_of(rule.kind)));
  page.paragraph(page.toned(rule.source + limits, TextPage::Tone::faint), 4);
}

void write_engine(TextPage& page, const EngineRules& engine, bool quiet) {
  std::string item;
  for (const Rule& rule : engine.rules) {
    if (quiet) {
      page.line(rule.id);
      continue;
    }
    if (rule.item != item) {
      if (!item.empty()) page.line();
      page.line(page.toned(engine.name + " " + rule.item, TextPage::Tone::strong));
    }
    item = rule.item;
    write_rule(page, rule);
  }
}

}  // namespace

std::string engine_rules_json(const std::vector<EngineRules>& engines) {
  Json list = Json::array();
  for (const EngineRules& engine : engines) {
    Json rows = Json::array();
    for (const Rule& rule : engine.rules) rows.push_back(rule_json(rule));
    list.push_back({{"name", engine.name}, {"rules", std::move(rows)}});
  }
  const Json out = {{"schema", "ullage.engines/1"}, {"command", "engines"}, {"engines", std::move(list)}};
  return printed(out);
}

std::string engine_rules_text(const std::vector<EngineRules>& engines, const TextStyle& style) {
  TextPage page(style);
  const bool quiet = style.detail == Detail::quiet;
  bool first = true;
  for (const EngineRules& engine : engines) {
    if (engine.rules.empty()) continue;
    if (!first && !quiet) page.line();
    first = false;
    write_engine(page, engine, quiet);
    if (quiet) continue;
    page.line();
    page.paragraph(
        page.say(Message{Text::engines_count,
                         {{"count", static_cast<std::int64_t>(engine.rules.size())}, {"engine", engine.title}}}),
        0);
  }
  return page.take();
}

std::string cite(const Rule& rule) {
  std::string bounds;
  if (!rule.since.empty()) bounds += "since " + rule.since + ", ";
  if (!rule.before.empty()) bounds += "before " + rule.before + ", ";
  if (!rule.limits.empty()) bounds += rule.limits + ", ";
  return "rule " + rule.id + " (" + bounds + std::string(engines::serving::name_of(rule.kind)) + "): " + rule.source;
}

}  // namespace ullage::report
