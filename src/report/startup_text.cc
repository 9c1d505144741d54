#include "report/startup_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/describe.h"
#include "report/glance.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

void write_bar(TextPage& page, const Prediction& p) {
  const double used =
      static_cast<double>(whole_of(p)) / static_cast<double>(std::max<std::int64_t>(1, *p.device.usable_bytes));
  const std::size_t width = std::min<std::size_t>(40, page.style().columns / 2);
  const std::string filled = pad_right(bar(used, width, page.style().unicode), width);
  page.line(fmt::format(
      "  [{}] {}", page.toned(filled, verdict_tone(p)),
      page.say(Message{Text::peak_share,
                       {{"percent", fmt::format("{:.1f}%", used * 100)}, {"usable", Bytes{*p.device.usable_bytes}}}})));
}

}  // namespace

void write_startup(TextPage& page, const Prediction& p) {
  const Startup& startup = *p.startup;
  if (!startup.refusal.empty()) {
    page.line(page.say(Message{Text::engine_says, {{"engine", startup.engine}}}));
    page.paragraph(startup.refusal, 2);
  }
  if (p.device.usable_bytes) write_bar(page, p);
}

void write_capacity(TextPage& page, const Prediction& p) {
  const Startup& startup = *p.startup;
  page.heading(Text::heading_capacity);
  for (const Message& message : startup.capacity) page.paragraph(page.say(message), 2);
  if (!startup.log.empty()) {
    page.line("  " + page.say(Message{Text::engine_prints, {{"engine", startup.engine}}}));
    for (const std::string& line : startup.log) page.paragraph(line, 4);
  }
}

}  // namespace ullage::report
