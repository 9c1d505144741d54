#include "report/prediction_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "report/describe.h"
#include "report/glance.h"
#include "report/layout.h"
#include "report/part_names.h"
#include "report/startup_text.h"

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

void write_full(TextPage& page, const FullCardLine& full) {
  page.paragraph(page.say(full_of(full, page.style().wording)), 0);
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

// Columns that the rows of a table share.
struct BarColumns {
  std::size_t name = 0;
  std::size_t size = 0;
};

// "  name        1.23 GiB  45.6%  ████"
std::string bar_row(const TextPage& page, std::string_view name, const BarColumns& columns, std::int64_t bytes,
                    std::int64_t whole) {
  const double fraction = share(bytes, whole);
  const std::size_t taken = 2 + columns.name + columns.size + kShareWidth + 2;
  const std::size_t width =
      std::clamp<std::size_t>(page.style().columns - std::min(page.style().columns, taken), 8, 28);
  const std::string shown = bar(fraction, width, page.style().unicode);
  std::string row = "  " + pad_right(name, columns.name) + pad_left(page.bytes(bytes), columns.size) +
                    pad_left(percent(fraction), kShareWidth);
  return shown.empty() ? row : row + "  " + page.toned(shown, Tone::good);
}

void write_rule(TextPage& page, const Why& why) {
  const std::string values = values_text(why);
  page.paragraph(page.toned(page.say(why.rule) + (values.empty() ? "" : ": " + values), Tone::faint), 6);
}

// "  cuda:0   20.41 GiB of 23.64 GiB   model.embed_tokens, model.layers.0-39"
void write_ranks(TextPage& page, const Prediction& p) {
  if (p.ranks.empty()) return;
  page.heading(Text::heading_ranks);
  for (const RankLine& rank : p.ranks) {
    const std::int64_t bytes = rank.peak.process_bytes.value_or(rank.peak.allocated_bytes);
    const bool fails = rank.fit.fits == false;
    page.line("  " + pad_right(rank.name, 8) +
              page.toned(pad_left(page.bytes(bytes), page.bytes_width()), fails ? Tone::bad : Tone::plain) +
              (rank.usable_bytes ? page.say(Message{Text::rank_of_usable, {{"usable", Bytes{*rank.usable_bytes}}}})
                                 : std::string()) +
              (rank.gpu.empty() ? "" : "  " + rank.gpu) + (rank.count == 1 ? "" : fmt::format("  x {}", rank.count)));
    std::string modules;
    for (const std::string& module : rank.modules) modules += (modules.empty() ? "" : ", ") + module;
    if (!modules.empty()) page.paragraph(page.toned(modules, Tone::faint), 6);
  }
}

void write_components(TextPage& page, const Prediction& p) {
  page.heading(Text::heading_components);
  BarColumns columns;
  for (const ComponentLine& line : p.components) {
    columns.name = std::max(columns.name, display_width(page.say(text_of(line.component))));
    columns.size = std::max(columns.size, page.width_of(line.bytes));
  }
  for (const ComponentLine& line : p.components) {
    if (line.bytes == 0 && page.style().detail != Detail::verbose) continue;
    page.line(bar_row(page, page.say(text_of(line.component)), columns, line.bytes, whole_of(p)));
    if (page.style().detail == Detail::verbose) write_rule(page, line.why);
  }
}

void write_phases(TextPage& page, const Prediction& p) {
  page.heading(p.serve ? Text::heading_phases_serve : Text::heading_phases);
  BarColumns columns;
  for (const PhaseLine& phase : p.phases) {
    columns.name = std::max(columns.name, display_width(page.say(text_of_phase(phase.name))));
    columns.size = std::max(columns.size, page.width_of(phase.allocated_bytes));
  }
  for (const PhaseLine& phase : p.phases) {
    const std::string name = page.say(text_of_phase(phase.name));
    page.line(bar_row(page, name, columns, phase.allocated_bytes, p.peak.allocated_bytes));
  }
}

void write_host(TextPage& page, const Prediction& p) {
  if (!p.host) return;
  page.line();
  if (p.host->load_peak_bytes)
    page.line(page.say(Message{Text::host_line, {{"bytes", Bytes{*p.host->load_peak_bytes}}}}));
  if (p.host->pinned_bytes) page.line(page.say(Message{Text::pinned_line, {{"bytes", Bytes{*p.host->pinned_bytes}}}}));
}

void write_parts(TextPage& page, const Prediction& p) {
  const std::vector<Group> groups = over_layers(p.parts);
  page.heading(Text::heading_parts);
  const std::size_t shown = std::min(groups.size(), page.style().detail == Detail::verbose ? kMost : kFewest);
  std::int64_t rest = p.peak.allocated_bytes;
  for (const Group& group : std::span(groups).first(shown)) {
    const std::string name = shorten(group_name(group, page.style().wording), 46, page.style().unicode);
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
  if (p.serve) return page.paragraph(page.say(Message{Text::work_line_serve, {{"all", tera(all_flops(w))}}}), 0);
  page.paragraph(page.say(Message{Text::work_line,
                                  {{"all", tera(all_flops(w))},
                                   {"forward", tera(w.forward_flops)},
                                   {"backward", tera(w.backward_flops)},
                                   {"recompute", tera(w.recompute_flops)}}}),
                 0);
}

// What only a run that was followed allocation by allocation has.
void write_timeline(TextPage& page, const Prediction& p) {
  write_phases(page, p);
  write_host(page, p);
  write_parts(page, p);
  write_layers(page, p);
  write_work(page, p);
}

void write_setup(TextPage& page, const Prediction& p) {
  page.heading(Text::heading_setup);
  page.paragraph(setup_text(p), 2);
}

void write_advice(TextPage& page, const Prediction& p) {
  if (!p.advice) return;
  page.heading(Text::heading_advice);
  if (p.advice->empty()) page.line("  " + page.say(Text::advice_none));
  for (const AdviceLine& line : *p.advice) {
    page.line("  " + page.toned(args_text(line), line.fits.value_or(false) ? Tone::good : Tone::strong));
    page.paragraph(page.say(advice_effect(line)), 6);
    page.paragraph(page.toned(page.say(line.text), Tone::faint), 6);
  }
}

}  // namespace

std::string prediction_text(const Prediction& p, const TextStyle& style) {
  TextPage page(style);
  if (style.detail == Detail::quiet) {
    page.line(page.say(verdict_of(p)));
    return page.take();
  }
  page.line(page.toned(page.say(title_of(p)), Tone::strong));
  page.paragraph(page.say(Message{Text::model_line,
                                  {{"family", p.model.family},
                                   {"parameters", Count{p.model.parameters}},
                                   {"bytes", Bytes{p.model.parameter_bytes}}}}),
                 0);
  page.line();
  page.line(page.toned(wrap(page.say(verdict_of(p)), style.columns, 0), verdict_tone(p)));
  if (p.startup) write_startup(page, p);
  else write_peak(page, p);
  write_ranks(page, p);
  write_components(page, p);
  if (p.startup) write_capacity(page, p);
  else write_timeline(page, p);
  if (style.detail == Detail::verbose) write_setup(page, p);
  write_advice(page, p);
  if (!p.textbook.empty()) write_textbook(page, p.textbook);
  page.list(Text::heading_warnings, p.warnings);
  page.list(Text::heading_assumptions, p.assumptions);
  return page.take();
}

std::string why_text(const Prediction& p, std::string_view component, const TextStyle& style) {
  TextPage page(style);
  page.line(page.toned(page.say(title_of(p)), Tone::strong));
  for (const ComponentLine& line : p.components) {
    if (!component.empty() && memory::name_of(line.component) != component) continue;
    page.line();
    page.line(page.toned(page.say(text_of(line.component)), Tone::strong) + "  " + page.bytes(line.bytes) + "  = " +
              with_separators(line.bytes) + " B");
    page.paragraph(page.say(line.why.rule), 2);
    for (const auto& [name, value] : line.why.values)
      page.line("    " + pad_left(with_separators(value), 22) + "  " + name);
    page.paragraph(page.toned(page.say(Message{Text::why_source, {{"source", line.why.source}}}), Tone::faint), 2);
  }
  return page.take();
}

}  // namespace ullage::report
