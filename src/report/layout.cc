#include "report/layout.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ullage::report {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The first character of `text`, all its bytes.
std::string_view first_character(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && is_continuation(text[length])) ++length;
  return text.substr(0, length);
}

std::uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  std::uint32_t value = lead & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) value = value << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return value;
}

// Han, kana, hangul and full-width forms (Unicode Standard Annex 11, East Asian Width).
bool is_wide(std::uint32_t point) {
  return (point >= 0x1100 && point <= 0x115F) || (point >= 0x2E80 && point <= 0xA4CF) ||
         (point >= 0xAC00 && point <= 0xD7A3) || (point >= 0xF900 && point <= 0xFAFF) ||
         (point >= 0xFE30 && point <= 0xFE6F) || (point >= 0xFF00 && point <= 0xFF60) ||
         (point >= 0x20000 && point <= 0x3FFFD);
}

std::size_t width_of(std::string_view character) { return is_wide(code_point(character)) ? 2 : 1; }

// As much of the beginning as fits.
std::string_view prefix(std::string_view text, std::size_t width) {
  std::size_t at = 0;
  std::size_t used = 0;
  while (at < text.size()) {
    const std::string_view character = first_character(text.substr(at));
    used += width_of(character);
    if (used > width) break;
    at += character.size();
  }
  return text.substr(0, at);
}

std::string_view suffix(std::string_view text, std::size_t width) {
  while (display_width(text) > width) text.remove_prefix(first_character(text).size());
  return text;
}

// The next piece that cannot be broken: a word with the blanks behind it, or one wide character with what clings to it.
std::string_view next_piece(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view character = first_character(text.substr(at));
    const bool wide = width_of(character) == 2;
    if (wide && at > 0) break;
    at += character.size();
    if (wide || character == " ") break;
  }
  // Closing punctuation does not begin a line.
  for (const std::string_view mark : {"，", "。", "；", "：", "、", "）"}) {
    if (text.substr(at).starts_with(mark)) return text.substr(0, at + mark.size());
  }
  return text.substr(0, at);
}

std::string_view without_blank(std::string_view piece) {
  return piece.ends_with(' ') ? piece.substr(0, piece.size() - 1) : piece;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    width += width_of(character);
    text.remove_prefix(character.size());
  }
  return width;
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width > used ? width - used : 0, ' ') + std::string(text);
}

std::string shorten(std::string_view text, std::size_t width, bool unicode) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view gap = unicode ? "…" : "...";
  const std::size_t left = width - std::min(width, display_width(gap));
  return std::string(prefix(text, left / 2)) + std::string(gap) + std::string(suffix(text, left - left / 2));
}

std::string bar(double fraction, std::size_t width, bool unicode) {
  static constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return {};
  const double columns = std::min(fraction, 1.0) * static_cast<double>(width);
  if (!unicode) return std::string(std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(columns))), '#');
  const auto eighths = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(columns * 8)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out.append(kEighths[eighths % 8]);
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::string_view piece = next_piece(text);
    text.remove_prefix(piece.size());
    const std::size_t needs = display_width(without_blank(piece));
    if (used > indent && used + needs > width) {
      while (out.ends_with(' ')) out.pop_back();
      out += "\n" + std::string(indent, ' ');
      used = indent;
    }
    out += piece;
    used += display_width(piece);
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace ullage::report
