#include <fmt/core.h>

#include "report/fit.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

using Tone = TextPage::Tone;

constexpr std::size_t kCards = 26;
constexpr std::size_t kModel = 34;
constexpr std::size_t kSize = 8;
constexpr std::size_t kWeights = 8;
constexpr std::size_t kContext = 10;
constexpr std::size_t kSpeed = 8;
constexpr std::size_t kPower = 9;

bool is_chinese(const TextPage& page) { return page.style().wording.language == Language::zh; }

std::string rate(const std::optional<double>& per_second) {
  if (!per_second) return "-";
  return *per_second < 10 ? fmt::format("{:.1f}", *per_second) : fmt::format("{:.0f}", *per_second);
}

std::string watts(const std::optional<std::int64_t>& power) {
  return power ? fmt::format("{} W", with_separators(*power)) : std::string("-");
}

std::string size_of_model(std::int64_t parameters) {
  return fmt::format("{:.3g}B", static_cast<double>(parameters) * 1e-9);
}

// "2 x rtx-4090"
std::string cards_text(const FitRow& row, bool unicode) {
  if (row.cards == 0) return row.gpu;
  return fmt::format("{} {} {}", row.cards, unicode ? "×" : "x", row.gpu);
}

std::string command(const FitRow& row) {
  std::string out = "ullage";
  for (const std::string& word : row.args) out += " " + word;
  return out;
}

void write_head(TextPage& page, const FitTable& table) {
  std::string head = table.ranks_models
                         ? pad_right(page.say(Text::column_model), kModel) + pad_left(page.say(Text::fit_size), kSize)
                         : pad_right(page.say(Text::fit_cards), kCards);
  head += "  " + pad_right(page.say(Text::fit_weights), kWeights) + pad_left(page.say(Text::fit_context), kContext) +
          pad_left(page.say(Text::fit_tokens_per_second), kSpeed);
  if (is_chinese(page)) head += pad_left(page.say(Text::fit_characters_per_second), kSpeed);
  if (!table.ranks_models)
    head += pad_left(page.say(Text::fit_power), kPower) + pad_left(page.say(Text::fit_supply), kPower);
  page.line(page.toned("  " + head, Tone::strong));
}

void write_row(TextPage& page, const FitTable& table, const FitRow& row) {
  if (!row.not_modelled.empty()) {
    page.paragraph(page.say(Message{Text::fit_not_modelled, {{"problem", row.not_modelled}}}), 2);
    return;
  }
  const bool unicode = page.style().unicode;
  std::string line = "  ";
  if (table.ranks_models)
    line += pad_right(shorten(row.name, kModel - 1, unicode), kModel) + pad_left(size_of_model(row.parameters), kSize);
  else line += pad_right(shorten(cards_text(row, unicode), kCards - 1, unicode), kCards);
  if (row.cards == 0) {
    page.line(page.toned(line + "  " + page.say(Text::fit_nothing), Tone::bad));
    return;
  }
  const std::string weights = row.quantization.empty() ? row.dtype : row.quantization;
  line += "  " + pad_right(weights, kWeights) +
          pad_left(with_separators(row.context_tokens) + (row.at_the_limit ? "*" : " "), kContext) +
          pad_left(rate(row.tokens_per_second), kSpeed);
  if (is_chinese(page)) {
    const auto characters =
        row.tokens_per_second ? std::optional(characters_per_second(*row.tokens_per_second)) : std::nullopt;
    line += pad_left(rate(characters), kSpeed);
  }
  if (!table.ranks_models) line += pad_left(watts(row.cards_w), kPower) + pad_left(watts(row.supply_w), kPower);
  page.line(page.toned(line, row.quantization.empty() ? Tone::good : Tone::plain));
  page.line(page.toned("      " + command(row), Tone::faint));
}

// The model's name and the columns, in front of its rows.
void write_model(TextPage& page, const FitTable& table, const FitRow& row) {
  page.line();
  if (!row.not_modelled.empty()) {
    page.line(page.toned(row.model, Tone::strong));
    return;
  }
  const std::string shown = row.model == row.name ? row.name : fmt::format("{} ({})", row.model, row.name);
  page.line(page.toned(page.say(Message{Text::fit_model, {{"model", shown}, {"parameters", Count{row.parameters}}}}),
                       Tone::strong));
  write_head(page, table);
}

}  // namespace

std::string fit_text(const FitTable& table, const TextStyle& style) {
  TextPage page(style);
  const bool quiet = style.detail == Detail::quiet;
  if (quiet) {
    for (const FitRow& row : table.rows) {
      if (row.cards > 0) page.line(command(row));
    }
    return page.take();
  }
  page.line(page.toned(page.say(Message{table.ranks_models ? Text::fit_title_models : Text::fit_title,
                                        {{"gpu", table.rows.empty() ? std::string("-") : table.rows.front().title},
                                         {"tokens", Count{table.least_tokens}}}}),
                       Tone::strong));
  if (table.ranks_models) {
    page.line();
    write_head(page, table);
  }
  std::string model;
  for (const FitRow& row : table.rows) {
    if (!table.ranks_models && row.model != model) write_model(page, table, row);
    model = row.model;
    write_row(page, table, row);
  }
  page.line();
  bool limited = false;
  for (const FitRow& row : table.rows) limited = limited || row.at_the_limit;
  if (limited) page.paragraph(page.say(Text::fit_star), 0);
  if (table.left_out > 0) page.paragraph(page.say(Message{Text::fit_left_out, {{"count", table.left_out}}}), 0);
  if (table.not_fitting > 0)
    page.paragraph(page.say(Message{Text::fit_not_fitting, {{"count", table.not_fitting}}}), 0);
  page.list(Text::heading_warnings, table.warnings);
  page.list(Text::heading_assumptions, table.assumptions);
  return page.take();
}

}  // namespace ullage::report
