#include "report/text_style.h"

#include <algorithm>

#include "report/layout.h"

namespace ullage::report {
namespace {

std::string_view escape_of(TextPage::Tone tone) {
  switch (tone) {
    case TextPage::Tone::plain: return "";
    case TextPage::Tone::strong: return "\x1b[1m";
    case TextPage::Tone::good: return "\x1b[32m";
    case TextPage::Tone::bad: return "\x1b[1;31m";
    case TextPage::Tone::unsure: return "\x1b[33m";
    case TextPage::Tone::faint: return "\x1b[2m";
  }
  return "";
}

}  // namespace

std::string TextPage::toned(std::string_view text, Tone tone) const {
  if (!style_.color || tone == Tone::plain || text.empty()) return std::string(text);
  return std::string(escape_of(tone)).append(text).append("\x1b[0m");
}

std::size_t TextPage::width_of(std::int64_t size) const {
  return std::max(bytes_width(), display_width(bytes(size)) + 1);
}

void TextPage::item(const Message& message) { line("  - " + wrap(say(message), style_.columns - 4, 4)); }

void TextPage::list(Text heading_text, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  heading(heading_text);
  for (const Message& message : messages) item(message);
}

void TextPage::paragraph(std::string_view text, std::size_t indent) {
  line(std::string(indent, ' ') + wrap(text, style_.columns - indent, indent));
}

}  // namespace ullage::report
