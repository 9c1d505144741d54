#include <fmt/core.h>

#include "report/layout.h"
#include "report/lists.h"

namespace ullage::report {
namespace {

std::string or_dash(const std::optional<double>& value, double scale) {
  return value ? fmt::format("{:.0f}", *value * scale) : std::string("-");
}

}  // namespace

std::string models_text(const std::vector<ListedModel>& models, const TextStyle& style) {
  TextPage page(style);
  const bool quiet = style.detail == Detail::quiet;
  if (!quiet) {
    page.line(page.toned(pad_right(page.say(Text::column_model), 52) +
                             pad_right(page.say(Text::column_model_type), 12) +
                             pad_left(page.say(Text::column_parameters), 16),
                         TextPage::Tone::strong));
  }
  for (const ListedModel& m : models) {
    if (quiet) page.line(m.name);
    else
      page.line(pad_right(shorten(m.name, 51, style.unicode), 52) +
                pad_right(shorten(m.model_type, 11, style.unicode), 12) +
                pad_left(m.parameters ? with_separators(*m.parameters) : std::string("-"), 16));
  }
  if (!quiet) page.line(page.say(Message{Text::models_count, {{"count", static_cast<std::int64_t>(models.size())}}}));
  return page.take();
}

std::string gpus_text(const std::vector<hardware::Gpu>& gpus, const TextStyle& style) {
  TextPage page(style);
  const bool quiet = style.detail == Detail::quiet;
  if (!quiet) {
    page.line(page.toned(pad_right(page.say(Text::column_gpu), 28) +
                             pad_left(page.say(Text::column_memory), page.bytes_width()) +
                             pad_left(page.say(Text::column_usable), page.bytes_width()) + pad_left("GB/s", 7) +
                             pad_left("bf16", 7) + pad_left("CC", 6) + pad_left(page.say(Text::column_year), 6),
                         TextPage::Tone::strong));
  }
  for (const hardware::Gpu& g : gpus) {
    if (quiet) {
      page.line(g.id);
      continue;
    }
    page.line(pad_right(shorten(g.id, 27, style.unicode), 28) +
              pad_left(page.bytes(g.memory_bytes), page.bytes_width()) +
              pad_left(page.bytes(g.usable_bytes), page.bytes_width()) +
              pad_left(or_dash(g.memory_bandwidth_bytes_per_s, 1e-9), 7) + pad_left(or_dash(g.peak.bf16_tflops, 1), 7) +
              pad_left(g.compute_capability ? hardware::to_string(*g.compute_capability) : std::string("-"), 6) +
              pad_left(g.year ? std::to_string(*g.year) : std::string("-"), 6));
  }
  if (!quiet) page.line(page.say(Message{Text::gpus_count, {{"count", static_cast<std::int64_t>(gpus.size())}}}));
  return page.take();
}

}  // namespace ullage::report
