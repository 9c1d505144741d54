#include "report/versions.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/describe.h"
#include "report/glance.h"
#include "report/layout.h"
#include "report/prediction_json.h"

namespace ullage::report {
namespace {

constexpr std::size_t kColumn = 14;

std::string version_of(const Prediction& p) { return p.startup ? p.startup->version : std::string(); }

struct SettingPair {
  std::string name;
  std::array<std::string, 2> values;  // "-": the release does not have it
};

std::string value_of(const Prediction& p, const std::string& name) {
  for (const Setting& setting : p.setup) {
    if (setting.name == name) return shown(setting);
  }
  return "-";
}

// Of those that differ.
std::vector<SettingPair> settings_of(const VersionPair& pair) {
  std::vector<SettingPair> out;
  for (const Prediction& p : pair) {
    for (const Setting& setting : p.setup) {
      const bool noted =
          std::any_of(out.begin(), out.end(), [&](const SettingPair& one) { return one.name == setting.name; });
      SettingPair found{setting.name, {value_of(pair[0], setting.name), value_of(pair[1], setting.name)}};
      if (!noted && setting.name != "engine_version" && found.values[0] != found.values[1])
        out.push_back(std::move(found));
    }
  }
  return out;
}

struct BytesPair {
  std::string name;  // of JSON
  Text title{};
  std::array<std::int64_t, 2> bytes{};
};

std::int64_t component_of(const Prediction& p, memory::Component component) {
  std::int64_t sum = 0;
  for (const ComponentLine& line : p.components) sum += line.component == component ? line.bytes : 0;
  return sum;
}

std::vector<BytesPair> bytes_of(const VersionPair& pair) {
  std::vector<BytesPair> out;
  for (const Prediction& p : pair) {
    for (const ComponentLine& line : p.components) {
      const std::string name(memory::name_of(line.component));
      if (std::any_of(out.begin(), out.end(), [&](const BytesPair& one) { return one.name == name; })) continue;
      out.push_back({name,
                     text_of(line.component),
                     {component_of(pair[0], line.component), component_of(pair[1], line.component)}});
    }
  }
  out.push_back({"process", Text::versions_process, {whole_of(pair[0]), whole_of(pair[1])}});
  return out;
}

void write_row(TextPage& page, const std::string& name, std::size_t width, const std::string& first,
               const std::string& second, const std::string& change) {
  page.line("  " + pad_right(name, width) + pad_left(first, kColumn) + pad_left(second, kColumn) +
            (change.empty() ? std::string() : pad_left(change, kColumn + 2)));
}

std::string change_text(const TextPage& page, std::int64_t by) {
  if (by == 0) return "=";
  return (by > 0 ? "+" : "-") + page.bytes(by > 0 ? by : -by);
}

void write_settings(TextPage& page, const VersionPair& pair, std::size_t width) {
  page.heading(Text::heading_version_defaults);
  const std::vector<SettingPair> settings = settings_of(pair);
  if (settings.empty()) page.line("  " + page.say(Text::versions_same));
  for (const SettingPair& setting : settings)
    write_row(page, setting.name, width, setting.values[0], setting.values[1], {});
}

void write_memory(TextPage& page, const VersionPair& pair, std::size_t width) {
  page.heading(Text::heading_version_memory);
  for (const BytesPair& row : bytes_of(pair)) {
    write_row(page, page.say(row.title), width, page.bytes(row.bytes[0]), page.bytes(row.bytes[1]),
              change_text(page, row.bytes[1] - row.bytes[0]));
  }
  if (!pair[0].serve || !pair[1].serve) return;
  const std::array<std::int64_t, 2> tokens{pair[0].serve->kv_tokens, pair[1].serve->kv_tokens};
  const std::int64_t more = tokens[1] - tokens[0];
  write_row(page, page.say(Text::versions_tokens), width, with_separators(tokens[0]), with_separators(tokens[1]),
            more == 0 ? "=" : (more > 0 ? "+" : "") + with_separators(more));
}

}  // namespace

std::string versions_text(const VersionPair& pair, const TextStyle& style) {
  constexpr std::size_t kNames = 26;
  TextPage page(style);
  page.line(page.toned(page.say(title_of(pair[0])), TextPage::Tone::strong));
  page.line(page.toned(page.say(title_of(pair[1])), TextPage::Tone::strong));
  if (style.detail != Detail::quiet) {
    page.line();
    write_row(page, {}, kNames, version_of(pair[0]), version_of(pair[1]), {});
    write_settings(page, pair, kNames);
    write_memory(page, pair, kNames);
  }
  page.line();
  for (const Prediction& p : pair) {
    page.line(page.toned(wrap(fmt::format("{}: {}", version_of(p), page.say(verdict_of(p))), style.columns, 2),
                         verdict_tone(p)));
    if (p.startup && !p.startup->refusal.empty() && style.detail != Detail::quiet)
      page.paragraph(p.startup->refusal, 2);
  }
  return page.take();
}

std::string versions_json(const VersionPair& pair) {
  Json out = {{"schema", "ullage.versions/1"},
              {"command", pair[0].command},
              {"versions", {version_of(pair[0]), version_of(pair[1])}}};
  Json settings = Json::array();
  for (const SettingPair& setting : settings_of(pair)) {
    const auto value = [](const std::string& text) { return text == "-" ? Json(nullptr) : Json(text); };
    settings.push_back(
        {{"name", setting.name}, {"values", Json::array({value(setting.values[0]), value(setting.values[1])})}});
  }
  Json rows = Json::array();
  for (const BytesPair& row : bytes_of(pair))
    rows.push_back({{"name", row.name}, {"bytes", Json::array({row.bytes[0], row.bytes[1]})}});
  out["defaults"] = std::move(settings);
  out["memory"] = std::move(rows);
  out["predictions"] = Json::array({prediction_document(pair[0]), prediction_document(pair[1])});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ullage::report
