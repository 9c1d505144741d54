#include "report/prediction_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "report/describe.h"
#include "report/layout.h"
#include "report/part_names.h"

namespace ullage::report {
namespace {

using Tone = TextPage::Tone;

constexpr std::size_t kShareWidth = 7;
constexpr std::size_t kFewest = 8;  // groups of tensors, layers
constexpr std::size_t kMost = 40;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(double fraction) { return fmt::format("{:.1f}%", fraction * 100); }

Message title(const Prediction& p) {
  if (p.device.name.empty()) return {Text::title_train, {{"model", p.model.name}}};
  return {Text::title_train_on, {{"model", p.model.name}, {"count", p.device.count}, {"gpu", p.device.title}}};
}

bool is_certain(const Prediction& p) { return p.fit.certain.value_or(false); }

Message verdict(const Prediction& p) {
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

// What the shares of components are of.
std::int64_t whole_of(const Prediction& p) { return p.peak.process_bytes.value_or(p.peak.allocated_bytes); }

void write_full(TextPage& page, const FullCardLine& full) {
  page.paragraph(page.say(Message{full.in_first_step ? Text::full_first_step : Text::full_line,
                                  {{"moment", page.say(describe(full.at))}}}),
                 0);
  page.paragraph(full.message, 2);
}

void write_peak(TextPage& page, const Prediction& p) {
  page.line(page.say(
      Message{Text::peak_line, {{"bytes", Bytes{p.peak.allocated_bytes}}, {"moment", page.say(describe(p.peak.at))}}}));
  if (p.peak.process_bytes && p.peak.reserved_bytes && p.peak.process_range) {
    page.paragraph(page.say(Message{Text::levels_line,
                                    {{"allocated", Bytes{p.peak.allocated_bytes}},
                                     {"reserved", Bytes{*p.peak.reserved_bytes}},
                                     {"process", Bytes{*p.peak.process_bytes}},
                                     {"low", Bytes{p.peak.process_range->low_bytes}},
                                     {"high", Bytes{p.peak.process_range->high_bytes}}}}),
                   2);
  }
  if (!p.device.usable_bytes || !p.fit.fits) return;
  const double used = share(whole_of(p), *p.device.usable_bytes);
  const std::size_t width = std::min<std::size_t>(40, page.style().columns / 2);
  const std::string filled = pad_right(bar(used, width, page.style().unicode), width);
  page.line(fmt::format(
      "  [{}] {}", page.toned(filled, verdict_tone(p)),
      page.say(Message{Text::peak_share, {{"percent", percent(used)}, {"usable", Bytes{*p.device.usable_bytes}}}})));
  if (p.full) write_full(page, *p.full);
}

// "  name        1.23 GiB  45.6%  ████"
std::string bar_row(const TextPage& page, std::string_view name, std::size_t name_width, std::int64_t bytes,
                    std::int64_t whole) {
  const double fraction = share(bytes, whole);
  const std::size_t taken = 2 + name_width + page.bytes_width() + kShareWidth + 2;
  const std::size_t width =
      std::clamp<std::size_t>(page.style().columns - std::min(page.style().columns, taken), 8, 28);
  const std::string shown = bar(fraction, width, page.style().unicode);
  std::string row = "  " + pad_right(name, name_width) + pad_left(page.bytes(bytes), page.bytes_width()) +
                    pad_left(percent(fraction), kShareWidth);
  return shown.empty() ? row : row + "  " + page.toned(shown, Tone::good);
}

void write_rule(TextPage& page, const Why& why) {
  std::string values;
  for (const auto& [name, value] : why.values)
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, with_separators(value));
  page.paragraph(page.toned(page.say(why.rule) + (values.empty() ? "" : ": " + values), Tone::faint), 6);
}

void write_components(TextPage& page, const Prediction& p) {
  page.heading(Text::heading_components);
  std::size_t width = 0;
  for (const ComponentLine& line : p.components)
    width = std::max(width, display_width(page.say(text_of(line.component))));
  for (const ComponentLine& line : p.components) {
    if (line.bytes == 0 && page.style().detail != Detail::verbose) continue;
    page.line(bar_row(page, page.say(text_of(line.component)), width, line.bytes, whole_of(p)));
    if (page.style().detail == Detail::verbose) write_rule(page, line.why);
  }
}

void write_phases(TextPage& page, const Prediction& p) {
  page.heading(Text::heading_phases);
  std::size_t width = 0;
  for (const PhaseLine& phase : p.phases) width = std::max(width, display_width(page.say(text_of_phase(phase.name))));
  for (const PhaseLine& phase : p.phases) {
    page.line(bar_row(page, page.say(text_of_phase(phase.name)), width, phase.allocated_bytes, p.peak.allocated_bytes));
  }
}

std::string group_name(const TextPage& page, const Group& group) {
  if (group.layers <= 1) return group.name;
  return page.say(Message{Text::group_layers, {{"name", group.name}, {"layers", group.layers}}});
}

void write_parts(TextPage& page, const Prediction& p) {
  const std::vector<Group> groups = over_layers(p.parts);
  page.heading(Text::heading_parts);
  const std::size_t shown = std::min(groups.size(), page.style().detail == Detail::verbose ? kMost : kFewest);
  std::int64_t rest = p.peak.allocated_bytes;
  for (const Group& group : std::span(groups).first(shown)) {
    const std::string name = shorten(group_name(page, group), 46, page.style().unicode);
    page.line("  " + pad_left(page.bytes(group.bytes), page.bytes_width()) + "  " +
              pad_right(page.say(text_of(group.component)), 17) + name);
    rest -= group.bytes;
  }
  if (rest > 0) {
    page.line("  " + pad_left(page.bytes(rest), page.bytes_width()) + "  " +
              page.say(Message{Text::parts_rest, {{"count", static_cast<std::int64_t>(groups.size() - shown)}}}));
  }
}

std::string layer_name(const TextPage& page, std::optional<std::int64_t> layer) {
  return layer ? page.say(Message{Text::layer_number, {{"layer", *layer}}}) : page.say(Text::layer_none);
}

// Neighbouring layers with the same bytes share a row.
struct LayerRun {
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> last;
  std::int64_t bytes = 0;  // of each
};

std::vector<LayerRun> layer_runs(const std::vector<LayerLine>& layers) {
  std::vector<LayerRun> out;
  for (const LayerLine& layer : layers) {
    if (!out.empty() && out.back().first && layer.layer && out.back().bytes == layer.bytes)
      out.back().last = layer.layer;
    else out.push_back({layer.layer, layer.layer, layer.bytes});
  }
  return out;
}

std::string run_name(const TextPage& page, const LayerRun& run) {
  if (run.first == run.last) return layer_name(page, run.first);
  return page.say(Message{Text::layer_range, {{"first", *run.first}, {"last", *run.last}}});
}

void write_layers(TextPage& page, const Prediction& p) {
  if (p.layers.size() < 2) return;
  std::vector<LayerRun> runs = layer_runs(p.layers);
  if (page.style().detail != Detail::verbose && runs.size() > kFewest) {
    std::stable_sort(runs.begin(), runs.end(), [](const LayerRun& a, const LayerRun& b) { return a.bytes > b.bytes; });
    runs.resize(kFewest);
  }
  page.heading(Text::heading_layers);
  for (const LayerRun& run : runs) {
    page.line("  " + pad_left(page.bytes(run.bytes), page.bytes_width()) + "  " + run_name(page, run));
  }
}

std::string tera(double flops) { return fmt::format("{:.3f}", flops * 1e-12); }

double all_flops(const Work& w) { return w.forward_flops + w.backward_flops + w.recompute_flops + w.optimizer_flops; }

void write_work(TextPage& page, const Prediction& p) {
  const Work& w = p.work;
  page.line();
  page.paragraph(page.say(Message{Text::work_line,
                                  {{"all", tera(all_flops(w))},
                                   {"forward", tera(w.forward_flops)},
                                   {"backward", tera(w.backward_flops)},
                                   {"recompute", tera(w.recompute_flops)}}}),
                 0);
}

std::string shown(const Setting& setting) {
  struct Show {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{:g}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return v; }
  };
  return std::visit(Show{}, setting.value);
}

void write_setup(TextPage& page, const Prediction& p) {
  page.heading(Text::heading_setup);
  std::string all;
  for (const Setting& setting : p.setup)
    all += fmt::format("{}{}={}", all.empty() ? "" : " ", setting.name, shown(setting));
  page.paragraph(all, 2);
}

void write_list(TextPage& page, Text heading, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  page.heading(heading);
  for (const Message& message : messages) page.item(message);
}

}  // namespace

std::string prediction_text(const Prediction& p, const TextStyle& style) {
  TextPage page(style);
  if (style.detail == Detail::quiet) {
    page.line(page.say(verdict(p)));
    return page.take();
  }
  page.line(page.toned(page.say(title(p)), Tone::strong));
  page.paragraph(page.say(Message{Text::model_line,
                                  {{"family", p.model.family},
                                   {"parameters", Count{p.model.parameters}},
                                   {"bytes", Bytes{p.model.parameter_bytes}}}}),
                 0);
  page.line();
  page.line(page.toned(wrap(page.say(verdict(p)), style.columns, 0), verdict_tone(p)));
  write_peak(page, p);
  write_components(page, p);
  write_phases(page, p);
  write_parts(page, p);
  write_layers(page, p);
  write_work(page, p);
  if (style.detail == Detail::verbose) write_setup(page, p);
  write_list(page, Text::heading_warnings, p.warnings);
  write_list(page, Text::heading_assumptions, p.assumptions);
  return page.take();
}

}  // namespace ullage::report
