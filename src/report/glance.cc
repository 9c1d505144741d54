#include "report/glance.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/describe.h"

namespace ullage::report {
namespace {

using Tone = TextPage::Tone;

bool is_certain(const Prediction& p) { return p.fit.certain.value_or(false); }

Message startup_verdict(const Prediction& p) {
  const Startup& s = *p.startup;
  const Bytes process{p.peak.process_bytes.value_or(p.peak.allocated_bytes)};
  if (!p.device.usable_bytes) return {Text::verdict_engine_no_card, {{"process", process}}};
  const memory::Range range = p.peak.process_range.value_or(memory::Range{process.value, process.value});
  Message out{Text::verdict_starts,
              {{"process", process},
               {"usable", Bytes{*p.device.usable_bytes}},
               {"left", Bytes{p.fit.headroom_bytes.value_or(0)}},
               {"low", Bytes{range.low_bytes}},
               {"high", Bytes{range.high_bytes}},
               {"reason", s.outcome.key}}};
  if (s.starts) out.key = is_certain(p) ? Text::verdict_starts : Text::verdict_probably_starts;
  else out.key = is_certain(p) ? Text::verdict_refuses : Text::verdict_probably_refuses;
  return out;
}

// How many cards the title's first name stands for; further kinds have their counts in it.
std::int64_t first_kind(const Prediction& p) {
  if (p.ranks.empty()) return p.device.count;
  return std::find_if(p.ranks.begin(), p.ranks.end(), [&](const auto& r) { return r.gpu != p.ranks.front().gpu; }) -
         p.ranks.begin();
}

}  // namespace

std::string shown(const Setting& setting) {
  struct Show {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{:g}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return v; }
  };
  return std::visit(Show{}, setting.value);
}

Message title_of(const Prediction& p) {
  if (p.startup) {
    return {p.device.name.empty() ? Text::title_engine : Text::title_engine_on,
            {{"model", p.model.name},
             {"engine", p.startup->engine},
             {"version", p.startup->version},
             {"count", p.device.count},
             {"gpu", p.device.title}}};
  }
  const bool serves = p.serve.has_value();
  if (p.device.name.empty()) return {serves ? Text::title_serve : Text::title_train, {{"model", p.model.name}}};
  return {serves ? Text::title_serve_on : Text::title_train_on,
          {{"model", p.model.name}, {"count", first_kind(p)}, {"gpu", p.device.title}}};
}

Message verdict_of(const Prediction& p) {
  if (p.startup) return startup_verdict(p);
  const Bytes allocated{p.peak.allocated_bytes};
  if (!p.device.usable_bytes) return {Text::verdict_no_card, {{"allocated", allocated}}};
  if (!p.fit.fits || !p.peak.process_bytes || !p.peak.process_range || !p.fit.headroom_bytes)
    return {Text::verdict_host, {{"allocated", allocated}}};
  const std::int64_t left = *p.fit.headroom_bytes;
  Message out{Text::verdict_fits,
              {{"process", Bytes{*p.peak.process_bytes}},
               {"usable", Bytes{*p.device.usable_bytes}},
               {"left", Bytes{left}},
               {"missing", Bytes{-left}},
               {"low", Bytes{p.peak.process_range->low_bytes}},
               {"high", Bytes{p.peak.process_range->high_bytes}}}};
  if (*p.fit.fits) out.key = is_certain(p) ? Text::verdict_fits : Text::verdict_probably;
  else out.key = is_certain(p) ? Text::verdict_no : Text::verdict_hardly;
  return out;
}

Tone verdict_tone(const Prediction& p) {
  if (!p.fit.fits) return Tone::plain;
  if (!is_certain(p)) return Tone::unsure;
  return *p.fit.fits ? Tone::good : Tone::bad;
}

std::int64_t whole_of(const Prediction& p) { return p.peak.process_bytes.value_or(p.peak.allocated_bytes); }

Message full_of(const FullCardLine& full, const Wording& wording) {
  return {full.in_first_step ? Text::full_first_step : Text::full_line,
          {{"moment", render(describe(full.at), wording)}}};
}

std::string group_name(const Group& group, const Wording& wording) {
  if (group.layers <= 1) return group.name;
  return render({Text::group_layers, {{"name", group.name}, {"layers", group.layers}}}, wording);
}

std::string setup_text(const Prediction& p) {
  std::string all;
  for (const Setting& setting : p.setup)
    all += fmt::format("{}{}={}", all.empty() ? "" : " ", setting.name, shown(setting));
  return all;
}

std::string args_text(const AdviceLine& line) {
  std::string out;
  for (const std::string& arg : line.args) out += (out.empty() ? "" : " ") + arg;
  return out;
}

Message advice_effect(const AdviceLine& line) {
  Text key = line.step_time_ratio ? Text::advice_saves_at : Text::advice_saves;
  if (line.saves_bytes <= 0) key = Text::advice_needs;
  const Text verdict = !line.fits ? Text::advice_open : *line.fits ? Text::advice_fits : Text::advice_too_large;
  return {key,
          {{"bytes", Bytes{line.saves_bytes}},
           {"whole", Bytes{line.needs_bytes}},
           {"verdict", verdict},
           {"ratio", fmt::format("{:.2f}", line.step_time_ratio.value_or(1))}}};
}

std::string values_text(const Why& why) {
  std::string values;
  for (const auto& [name, value] : why.values)
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, with_separators(value));
  return values;
}

}  // namespace ullage::report
