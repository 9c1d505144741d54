// How a text report is to look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/messages.h"

namespace ullage::report {

enum class Detail : std::uint8_t { quiet, normal, verbose };

struct TextStyle {
  Wording wording;
  bool color = false;   // ANSI escape sequences
  bool unicode = true;  // the terminal shows UTF-8
  std::size_t columns = 80;
  Detail detail = Detail::normal;
};

// A text being written, with the few ways of setting it apart.
class TextPage {
 public:
  explicit TextPage(const TextStyle& style) : style_(style) {}

  const TextStyle& style() const { return style_; }
  std::string say(const Message& message) const { return render(message, style_.wording); }
  std::string say(Text key) const { return std::string(text(key, style_.wording.language)); }
  std::string bytes(std::int64_t bytes) const { return format_bytes(bytes, style_.wording.unit); }

  // Columns that a size and the blank before it take.
  std::size_t bytes_width() const { return style_.wording.unit == Unit::bytes ? 17 : 11; }
  // At least those, and more for a size that would fill them.
  std::size_t width_of(std::int64_t size) const;

  enum class Tone : std::uint8_t { plain, strong, good, bad, unsure, faint };
  std::string toned(std::string_view text, Tone tone) const;

  void line(std::string_view text = {}) { out_.append(text).append("\n"); }
  void heading(Text key) {
    line();
    line(toned(say(key), Tone::strong));
  }
  // "  - text", wrapped.
  void item(const Message& message);
  void list(Text heading, const std::vector<Message>& messages);  // nothing where there are none
  // `indent` blanks and the text, wrapped.
  void paragraph(std::string_view text, std::size_t indent);

  std::string take() { return std::move(out_); }

 private:
  const TextStyle& style_;
  std::string out_;
};

}  // namespace ullage::report
