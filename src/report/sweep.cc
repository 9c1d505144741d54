#include "report/sweep.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/json.h"
#include "report/glance.h"
#include "report/json_parts.h"
#include "report/layout.h"
#include "report/prediction_json.h"

namespace ullage::report {
namespace {

constexpr std::size_t kColumns = 3;  // of sizes

const Prediction* first_prediction(const SweepTable& table) {
  for (const SweepRow& row : table.rows) {
    if (row.prediction) return &*row.prediction;
  }
  return nullptr;
}

std::string size_or_dash(const TextPage& page, const std::optional<std::int64_t>& bytes, std::size_t width) {
  return pad_left(bytes ? page.bytes(*bytes) : std::string("-"), width);
}

Text verdict_word(const Prediction& p) {
  if (!p.fit.fits) return Text::sweep_open;
  if (*p.fit.fits) return p.fit.certain.value_or(false) ? Text::sweep_fits : Text::sweep_probably;
  return p.fit.certain.value_or(false) ? Text::sweep_no : Text::sweep_hardly;
}

// What the longest bar stands for: the most that any value needs, or the card.
std::int64_t scale_of(const SweepTable& table) {
  std::int64_t most = 1;
  for (const SweepRow& row : table.rows) {
    if (row.prediction)
      most = std::max({most, whole_of(*row.prediction), row.prediction->device.usable_bytes.value_or(0)});
  }
  return most;
}

std::string plot(const Prediction& p, std::int64_t scale, std::size_t width, bool unicode) {
  const auto part = [&](std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(scale); };
  std::string filled = pad_right(bar(part(whole_of(p)), width, unicode), width);
  if (!p.device.usable_bytes || whole_of(p) > *p.device.usable_bytes) return filled;
  // The card's limit, where the bar does not reach it.
  const auto at = static_cast<std::size_t>(part(*p.device.usable_bytes) * static_cast<double>(width));
  const std::string shorter = bar(part(whole_of(p)), width, unicode);
  const std::size_t taken = display_width(shorter);
  if (at <= taken || at > width) return filled;
  return shorter + std::string(at - taken - 1, ' ') + "|" + std::string(width - at, ' ');
}

// Columns that the verdict of any row takes.
std::size_t verdict_width(const TextPage& page, const SweepTable& table) {
  std::size_t width = 0;
  for (const SweepRow& row : table.rows) {
    if (row.prediction) width = std::max(width, display_width(page.say(verdict_word(*row.prediction))));
  }
  return width;
}

// Columns that sizes of any row take, with the blank before them.
std::size_t size_width(const TextPage& page, const SweepTable& table) {
  std::size_t width = page.bytes_width();
  for (const SweepRow& row : table.rows) {
    if (!row.prediction) continue;
    const Peak& peak = row.prediction->peak;
    for (const auto& bytes : {std::optional(peak.allocated_bytes), peak.reserved_bytes, peak.process_bytes})
      width = std::max(width, page.width_of(bytes.value_or(0)));
  }
  return width;
}

struct Columns {
  std::size_t value = 0;
  std::size_t found = 0;  // with the blanks before it; 0: nothing was searched
  std::size_t size = 0;
  std::size_t plot = 0;
};

void write_row(TextPage& page, const SweepRow& row, const Columns& columns, std::int64_t scale) {
  const std::string value = "  " + pad_left(row.value, columns.value);
  if (!row.prediction) {
    page.line(value + "  " + shorten(row.error, page.style().columns - columns.value - 4, page.style().unicode));
    return;
  }
  const Prediction& p = *row.prediction;
  page.line(value + pad_left(row.found, columns.found) + size_or_dash(page, p.peak.allocated_bytes, columns.size) +
            size_or_dash(page, p.peak.reserved_bytes, columns.size) +
            size_or_dash(page, p.peak.process_bytes, columns.size) + "  " +
            page.toned(plot(p, scale, columns.plot, page.style().unicode), verdict_tone(p)) + " " +
            page.toned(page.say(verdict_word(p)), verdict_tone(p)));
}

}  // namespace

std::string sweep_text(const SweepTable& table, const TextStyle& style) {
  TextPage page(style);
  const Prediction* first = first_prediction(table);
  if (first != nullptr && style.detail != Detail::quiet) {
    page.line(page.toned(page.say(title_of(*first)), TextPage::Tone::strong));
    if (first->device.usable_bytes)
      page.line(page.say(Message{Text::sweep_card, {{"usable", Bytes{*first->device.usable_bytes}}}}));
    page.line();
  }
  std::size_t width = table.option.size();
  for (const SweepRow& row : table.rows) width = std::max(width, display_width(row.value));
  const std::size_t found = table.searched.empty() ? 0 : table.searched.size() + 2;
  const std::size_t size = size_width(page, table);
  page.line(page.toned("  " + pad_left(table.option, width) + pad_left(table.searched, found) +
                           pad_left(page.say(Text::column_allocated), size) +
                           pad_left(page.say(Text::column_reserved), size) +
                           pad_left(page.say(Text::column_process), size),
                       TextPage::Tone::strong));
  const std::int64_t scale = scale_of(table);
  const std::size_t taken = 2 + width + found + kColumns * size + 3 + verdict_width(page, table);
  const std::size_t room = style.columns - std::min(style.columns, taken);
  const Columns columns{width, found, size, std::clamp<std::size_t>(room, 6, 32)};
  for (const SweepRow& row : table.rows) write_row(page, row, columns, scale);
  return page.take();
}

std::string sweep_json(const SweepTable& table) {
  Json out = Json::object();
  out["schema"] = "ullage.sweep/1";
  out["command"] = "train";
  out["option"] = table.option;
  out["rows"] = Json::array();
  for (const SweepRow& row : table.rows) {
    Json entry = {{"value", row.value}, {"prediction", nullptr}, {"error", nullptr}};
    if (row.prediction) entry["prediction"] = prediction_document(*row.prediction);
    else entry["error"] = row.error;
    out["rows"].push_back(std::move(entry));
  }
  return printed(out);
}

}  // namespace ullage::report
