#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "report/layout.h"
#include "report/utilisation.h"

namespace ullage::report {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

// So many digits behind the point, none that say nothing.
std::string number(double value, int digits = 4) {
  std::string out = fmt::format("{:.{}f}", value, digits);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string percent(std::optional<double> fraction) { return fraction ? fmt::format("{:.2f}%", *fraction * 100) : "–"; }

void write_cards(TextPage& page, const Utilisation& u) {
  if (!u.model.empty())
    page.line(
        page.toned(page.say(Message{Text::mfu_model, {{"model", u.model}, {"active", Count{u.active_parameters}}}}),
                   TextPage::Tone::strong));
  const std::string tflops = u.peak_flops ? number(*u.peak_flops / kTera) : std::string();
  if (u.peak_formula) {
    page.paragraph(page.say(Message{Text::mfu_core_peak, {{"tflops", tflops}, {"formula", page.say(*u.peak_formula)}}}),
                   0);
  } else if (u.peak_flops) {
    page.paragraph(
        page.say(Message{Text::mfu_card_peak,
                         {{"count", u.gpus}, {"gpu", u.gpu_title}, {"tflops", tflops}, {"precision", u.precision}}}),
        0);
  }
}

void write_throughput(TextPage& page, const Utilisation& u) {
  const std::optional<double> one = tokens_per_second_per_gpu(u);
  if (!one) return;
  page.paragraph(
      page.say(Message{Text::mfu_throughput,
                       {{"tokens", number(*one, 1)}, {"all", number(*u.tokens_per_second, 1)}, {"count", u.gpus}}}),
      0);
  if (!u.reference) return;
  const double published = u.reference->tokens_per_second_per_gpu;
  page.paragraph(
      page.say(Message{
          Text::mfu_reference,
          {{"percent", percent(*one / published)}, {"tokens", number(published, 1)}, {"name", u.reference->name}}}),
      0);
}

void write_given(TextPage& page, const Utilisation& u) {
  if (!u.flops) return;
  const std::optional<double> mfu = mfu_of(u, nullptr);
  if (!mfu) return;
  page.paragraph(page.toned(page.say(Message{Text::mfu_given,
                                             {{"percent", percent(mfu)},
                                              {"tflops", number(*u.flops / kTera)},
                                              {"peak", number(*u.peak_flops / kTera)}}}),
                            TextPage::Tone::strong),
                 0);
  if (u.rerun == speed::Rerun::everything)
    page.paragraph(page.say(Message{Text::mfu_given_hardware, {{"percent", percent(hfu_of(u, nullptr))}}}), 0);
}

void write_rules(TextPage& page, const Utilisation& u) {
  if (u.rules.empty()) return;
  page.line();
  std::size_t width = 0;
  for (const WorkRule& rule : u.rules) width = std::max(width, display_width(rule.name));
  const std::optional<double> tokens = tokens_per_second_per_gpu(u);
  std::vector<std::array<std::string, 4>> cells{{"GFLOP/token", "TFLOPS/GPU", "MFU", "HFU"}};
  for (const WorkRule& rule : u.rules) {
    const std::string tflops = tokens ? fmt::format("{:.1f}", *tokens * rule.flops.model / kTera) : "–";
    cells.push_back({fmt::format("{:.3f}", rule.flops.model / kGiga), tflops, percent(mfu_of(u, &rule)),
                     percent(hfu_of(u, &rule))});
  }
  std::array<std::size_t, 4> widths{14, 12, 9, 9};  // with the blank in front
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]) + 2);
  }
  for (std::size_t at = 0; at < cells.size(); ++at) {
    std::string line = "  " + pad_right(at == 0 ? std::string() : u.rules[at - 1].name, width);
    for (std::size_t i = 0; i < widths.size(); ++i) line += pad_left(cells[at][i], widths[i]);
    page.line(line);
  }
  page.line();
  for (const WorkRule& rule : u.rules) {
    page.paragraph(fmt::format("{}: {} ({})", rule.name, page.say(rule.formula), rule.source), 2);
  }
}

}  // namespace

std::string utilisation_text(const Utilisation& u, const TextStyle& style) {
  TextPage page(style);
  if (style.detail == Detail::quiet) {
    page.line(percent(mfu_of(u, main_rule(u))));
    return page.take();
  }
  write_cards(page, u);
  write_given(page, u);
  write_throughput(page, u);
  write_rules(page, u);
  page.list(Text::heading_warnings, u.warnings);
  page.list(Text::heading_assumptions, u.assumptions);
  return page.take();
}

}  // namespace ullage::report
