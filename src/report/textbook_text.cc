#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/layout.h"
#include "report/textbook.h"

namespace ullage::report {
namespace {

constexpr double kGiga = 1e9;

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

// Bytes in both units, since the formulas are taught in the one and cards are read in the other.
std::string value_text(const TextbookLine& line) {
  if (line.unit == TextbookUnit::bytes)
    return pad_left(fmt::format("{:.2f} GB", line.value / kGiga), 12) + pad_left(format_bytes(whole(line.value)), 13);
  return pad_left(with_separators(whole(line.value)), 25);
}

// Sources in the order in which lines name them.
std::vector<std::string> sources_of(const std::vector<TextbookLine>& lines) {
  std::vector<std::string> out;
  for (const TextbookLine& line : lines) {
    if (std::find(out.begin(), out.end(), line.source) == out.end()) out.push_back(line.source);
  }
  return out;
}

// "weights: 28.00 GB, 26.08 GiB", and how.
void write_alone(TextPage& page, const TextbookLine& line) {
  const bool bytes = line.unit == TextbookUnit::bytes;
  page.line(page.say(line.title) + ": " +
            (bytes ? fmt::format("{:.2f} GB, {}", line.value / kGiga, format_bytes(whole(line.value)))
                   : with_separators(whole(line.value))));
  page.paragraph(line.formula, 2);
  page.paragraph(page.toned(line.source, TextPage::Tone::faint), 2);
}

void write_model(TextPage& page, const TextbookModel& model) {
  page.heading(Text::textbook_full);
  page.paragraph(
      page.say(Message{Text::textbook_full_model, {{"model", model.name}, {"parameters", Count{model.parameters}}}}),
      2);
  if (model.weight_bytes)
    page.paragraph(page.say(Message{Text::textbook_full_weights, {{"bytes", Bytes{*model.weight_bytes}}}}), 2);
  if (!model.step_allocated_bytes) return;
  page.paragraph(page.say(Message{Text::textbook_full_step,
                                  {{"bytes", Bytes{*model.step_allocated_bytes}}, {"command", model.step}}}),
                 2);
}

}  // namespace

void write_textbook(TextPage& page, const std::vector<TextbookLine>& lines) {
  page.heading(Text::heading_textbook);
  const std::vector<std::string> sources = sources_of(lines);
  std::size_t width = 0;
  for (const TextbookLine& line : lines) width = std::max(width, display_width(page.say(line.title)));
  for (const TextbookLine& line : lines) {
    const auto source = std::find(sources.begin(), sources.end(), line.source) - sources.begin();
    page.line("  " + pad_right(page.say(line.title), width) + value_text(line) + fmt::format("  [{}]", source + 1));
    page.paragraph(page.toned(line.formula, TextPage::Tone::faint), 6);
  }
  page.line();
  for (std::size_t i = 0; i < sources.size(); ++i) page.paragraph(fmt::format("[{}] {}", i + 1, sources[i]), 2);
}

std::string textbook_text(const TextbookAnswer& answer, const TextStyle& style) {
  TextPage page(style);
  if (answer.only) {
    for (const TextbookLine& line : answer.lines) write_alone(page, line);
    return page.take();
  }
  if (answer.question.parameters) {
    page.line(page.toned(page.say(Message{Text::textbook_title,
                                          {{"size", answer.size},
                                           {"parameters", Count{whole(*answer.question.parameters)}},
                                           {"bits", fmt::format("{:g}", answer.question.bits)}}}),
                         TextPage::Tone::strong));
  }
  page.paragraph(page.say(Text::textbook_intro), 0);
  write_textbook(page, answer.lines);
  if (answer.model) write_model(page, *answer.model);
  if (!answer.warnings.empty()) page.heading(Text::heading_warnings);
  for (const Message& warning : answer.warnings) page.item(warning);
  return page.take();
}

}  // namespace ullage::report
