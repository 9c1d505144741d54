#include "report/page.h"

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "data/page_script.h"
#include "data/page_style.h"
#include "report/describe.h"
#include "report/glance.h"
#include "report/page_timeline.h"
#include "report/part_names.h"
#include "report/prediction_text.h"

namespace ullage::report {
namespace {

constexpr std::size_t kMostParts = 40;

std::string_view name_of(Language language) { return language == Language::zh ? "zh" : "en"; }

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::gib: return "GiB";
    case Unit::gb: return "GB";
    case Unit::mib: return "MiB";
    case Unit::bytes: return "bytes";
  }
  return "GiB";
}

std::string_view name_of(TextPage::Tone tone) {
  switch (tone) {
    case TextPage::Tone::good: return "good";
    case TextPage::Tone::bad: return "bad";
    case TextPage::Tone::unsure: return "unsure";
    default: return "plain";
  }
}

// What the script itself says: names of components by number, phases by name, headings, labels.
Json texts(Language language) {
  Json out = Json::object();
  for (std::size_t i = 0; i < memory::kComponents; ++i)
    out["component_" + std::to_string(i)] = text(text_of(static_cast<memory::Component>(i)), language);
  for (const TextRow& row : all_texts()) {
    for (const std::string_view prefix : {"phase_", "heading_", "page_"}) {
      if (row.key.starts_with(prefix)) out[std::string(row.key)] = language == Language::zh ? row.zh : row.en;
    }
  }
  return out;
}

// The texts of one prediction in one language.
class Shown {
 public:
  Shown(const Prediction& prediction, const Wording& wording) : p_(prediction), wording_(wording) {}

  Json json(const std::vector<Group>& groups) const {
    Json out = Json::object();
    out["title"] = say(title_of(p_));
    out["model"] = say({Text::model_line,
                        {{"family", p_.model.family},
                         {"parameters", Count{p_.model.parameters}},
                         {"bytes", Bytes{p_.model.parameter_bytes}}}});
    out["verdict"] = say(verdict_of(p_));
    out["peak"] =
        say({Text::peak_line, {{"bytes", Bytes{p_.peak.allocated_bytes}}, {"moment", say(describe(p_.peak.at))}}});
    out["full"] = p_.full ? say(full_of(*p_.full, wording_)) : "";
    out["components"] = Json::array();
    for (const ComponentLine& line : p_.components)
      out["components"].push_back(
          {{"name", text(text_of(line.component), wording_.language)}, {"rule", rule(line.why)}});
    out["phases"] = Json::array();
    for (const PhaseLine& phase : p_.phases)
      out["phases"].push_back(text(text_of_phase(phase.name), wording_.language));
    out["parts"] = Json::array();
    for (const Group& group : groups)
      out["parts"].push_back(
          {{"component", text(text_of(group.component), wording_.language)}, {"name", group_name(group, wording_)}});
    out["advice"] = Json::array();
    for (const AdviceLine& line : p_.advice.value_or(std::vector<AdviceLine>{})) {
      out["advice"].push_back({{"args", args_text(line)},
                               {"effect", say(advice_effect(line))},
                               {"text", say(line.text)},
                               {"fits", line.fits.value_or(false)}});
    }
    out["warnings"] = all(p_.warnings);
    out["assumptions"] = all(p_.assumptions);
    return out;
  }

 private:
  std::string say(const Message& message) const { return render(message, wording_); }

  Json all(const std::vector<Message>& messages) const {
    Json out = Json::array();
    for (const Message& message : messages) out.push_back(say(message));
    return out;
  }

  std::string rule(const Why& why) const {
    const std::string values = values_text(why);
    const std::string out = say(why.rule) + (values.empty() ? "" : ": " + values);
    return why.source.empty() ? out : out + " [" + why.source + "]";
  }

  const Prediction& p_;
  Wording wording_;
};

// Where there are several cards, or kinds of them.
Json ranks(const Prediction& p) {
  Json out = Json::array();
  for (const RankLine& rank : p.ranks) {
    std::string name = rank.name + (rank.gpu.empty() ? "" : "  " + rank.gpu);
    if (rank.count > 1) name += "  x " + std::to_string(rank.count);
    std::string modules;
    for (const std::string& module : rank.modules) modules += (modules.empty() ? "" : ", ") + module;
    out.push_back({{"name", std::move(name)},
                   {"bytes", rank.peak.process_bytes.value_or(rank.peak.allocated_bytes)},
                   {"usable_bytes", rank.usable_bytes ? Json(*rank.usable_bytes) : Json(nullptr)},
                   {"fits", rank.fit.fits.value_or(true)},
                   {"modules", std::move(modules)}});
  }
  return out;
}

Json figures(const Prediction& p, const std::vector<Group>& groups) {
  Json out = Json::object();
  out["tone"] = name_of(verdict_tone(p));
  out["usable_bytes"] = p.device.usable_bytes ? Json(*p.device.usable_bytes) : Json(nullptr);
  out["peak_bytes"] = p.peak.allocated_bytes;
  out["whole_bytes"] = whole_of(p);
  out["out_of_memory"] = p.full ? p.full->message : "";
  out["component_order"] = Json::array();
  for (std::size_t i = 0; i < memory::kComponents; ++i) out["component_order"].push_back(i);
  out["components"] = Json::array();
  for (const ComponentLine& line : p.components)
    out["components"].push_back({{"component", static_cast<int>(line.component)}, {"bytes", line.bytes}});
  out["phases"] = Json::array();
  for (const PhaseLine& phase : p.phases) out["phases"].push_back({{"bytes", phase.allocated_bytes}});
  out["parts"] = Json::array();
  for (const Group& group : groups) out["parts"].push_back({{"bytes", group.bytes}});
  out["ranks"] = ranks(p);
  out["setup"] = setup_text(p);
  return out;
}

// JSON that a script element can hold: none of it can end the element.
std::string for_script(const Json& json) {
  std::string out = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(out.size());
  for (const char c : out) {
    if (c == '<') safe += "\\u003c";
    else safe += c;
  }
  return safe;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// Without scripts the page is the text report.
std::string plain_text(const Prediction& prediction, const Wording& wording) {
  TextStyle style;
  style.wording = wording;
  return prediction_text(prediction, style);
}

}  // namespace

std::string prediction_page(const Prediction& prediction, const memory::Timeline& timeline, const Wording& wording) {
  std::vector<Group> groups = over_layers(prediction.parts);
  groups.resize(std::min(groups.size(), kMostParts));
  Json json = figures(prediction, groups);
  json["language"] = name_of(wording.language);
  json["unit"] = name_of(wording.unit);
  for (const Language language : {Language::en, Language::zh}) {
    json["texts"][std::string(name_of(language))] = texts(language);
    json["shown"][std::string(name_of(language))] = Shown(prediction, {language, wording.unit}).json(groups);
  }
  json["timeline"] = page_timeline(timeline);
  std::string out = "<!doctype html>\n<html lang=\"" + std::string(name_of(wording.language)) +
                    "\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                    "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
                    escaped(render(title_of(prediction), wording)) + "</title>\n<style>\n";
  out.append(data::page_style()).append("</style>\n</head>\n<body>\n<main id=\"page\"></main>\n<noscript><pre>");
  out += escaped(plain_text(prediction, wording));
  out += "</pre></noscript>\n<script type=\"application/json\" id=\"report\">" + for_script(json) +
         "</script>\n<script>\n";
  out.append(data::page_script()).append("</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace ullage::report
