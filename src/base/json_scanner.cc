#include "base/json_scanner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"

namespace ullage {
namespace {

constexpr int kDeepest = 64;

// The first quotation mark or backslash from `at` on, or the end.
std::size_t find_special(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Eight decimal digits at once; false: not all of them are.
bool read_eight_digits(const char* digits, std::uint64_t& value) {
  if constexpr (std::endian::native != std::endian::little) return false;
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, digits, sizeof word);
  // A byte above '9' overflows into its top bit on the left, one below '0' on the right.
  const bool all = (((word + kEach * (0x7F - '9')) | (word - kEach * '0')) & (kEach * 0x80)) == 0;
  if (!all) return false;
  word -= kEach * '0';
  word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FF;  // the first digit is the lowest byte
  word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFF;
  value = (word * 10000 + (word >> 32)) & 0xFFFFFFFF;
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Four hexadecimal digits; -1: there are none.
std::int32_t code_unit(std::string_view text) {
  if (text.size() < 4) return -1;
  std::int32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return -1;
    out = 16 * out + digit;
  }
  return out;
}

void append_utf8(std::string& out, std::int32_t code) {
  const auto byte = [&](std::int32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12)), byte(0x80 | ((code >> 6) & 0x3F));
  } else {
    byte(0xF0 | (code >> 18)), byte(0x80 | ((code >> 12) & 0x3F)), byte(0x80 | ((code >> 6) & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

char simple_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '"':
    case '\\':
    case '/': return c;
    default: return '\0';
  }
}

}  // namespace

bool JsonScanner::take(char wanted) {
  if (peek() != wanted || failed_) {
    fail();
    return false;
  }
  ++at_;
  return true;
}

void JsonScanner::enter(char opening) { first_ = take(opening); }

bool JsonScanner::next(char closing) {
  if (failed_) return false;
  if (peek() == closing) {
    ++at_;
    first_ = false;
    return false;
  }
  if (!first_ && !take(',')) return false;
  first_ = false;
  return true;
}

bool JsonScanner::next_member() {
  if (!next('}')) return false;
  key_ = text();
  if (escaped_) {
    key_buffer_ = buffer_;
    key_ = key_buffer_;
  }
  return take(':');
}

std::string_view JsonScanner::quoted() {
  if (!take('"')) return {};
  const char* const begin = text_.data() + at_;
  const std::size_t left = text_.size() - at_;
  escaped_ = false;
  // Nearly all texts are without escapes: the library's own search, twice, is the quickest way to know.
  const auto* const end = static_cast<const char*>(std::memchr(begin, '"', left));
  const std::size_t length = end == nullptr ? left : static_cast<std::size_t>(end - begin);
  if (end != nullptr && (!has_escapes_ || std::memchr(begin, '\\', length) == nullptr)) {
    at_ += length + 1;
    return {begin, length};
  }
  return quoted_with_escapes();
}

std::string_view JsonScanner::quoted_with_escapes() {
  const std::size_t begin = at_;
  for (at_ = find_special(text_, at_); at_ < text_.size() && text_[at_] == '\\'; at_ = find_special(text_, at_ + 2)) {
    escaped_ = true;
    if (at_ + 2 > text_.size()) break;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    fail();
    return {};
  }
  return text_.substr(begin, at_++ - begin);
}

std::string_view JsonScanner::text() {
  const std::string_view raw = quoted();
  if (!escaped_ || failed_) return raw;
  if (unescape(raw)) return buffer_;
  fail();
  return {};
}

bool JsonScanner::append_code_unit(std::string_view raw, std::size_t& at) {
  std::int32_t code = code_unit(raw.substr(at));
  if (code < 0) return false;
  at += 4;
  if (code >= 0xD800 && code < 0xDC00 && raw.substr(at, 2) == "\\u") {
    const std::int32_t low = code_unit(raw.substr(at + 2));
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      at += 6;
    }
  }
  if (code >= 0xD800 && code < 0xE000) return false;  // half of a pair
  append_utf8(buffer_, code);
  return true;
}

bool JsonScanner::unescape(std::string_view raw) {
  buffer_.clear();
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t plain = std::min(raw.find('\\', at), raw.size());
    buffer_.append(raw.substr(at, plain - at));
    at = plain;
    if (at + 1 >= raw.size()) break;
    const char c = raw[at + 1];
    at += 2;
    if (c == 'u') {
      if (!append_code_unit(raw, at)) return false;
    } else if (const char escape = simple_escape(c); escape != '\0') {
      buffer_ += escape;
    } else {
      return false;
    }
  }
  return true;
}

std::int64_t JsonScanner::whole() {
  const char first = peek();
  if (failed_) return 0;
  const char* const begin = text_.data() + at_;
  const std::size_t left = text_.size() - at_;
  const char* const end = begin + left;
  const char* const fits = begin + std::min<std::size_t>(left, 18);
  const char* c = begin;
  std::uint64_t small = 0;
  for (std::uint64_t eight = 0; fits - c >= 8 && read_eight_digits(c, eight); c += 8)
    small = 100'000'000 * small + eight;
  for (unsigned digit = 0; c != fits && (digit = static_cast<unsigned char>(*c) - unsigned{'0'}) < 10; ++c)
    small = 10 * small + digit;
  auto out = static_cast<std::int64_t>(small);
  for (; c != end && is_digit(*c); ++c) {
    const int digit = *c - '0';
    if (out > (kMaxBytes - digit) / 10) {
      fail();
      break;
    }
    out = 10 * out + digit;
  }
  at_ += static_cast<std::size_t>(c - begin);
  const bool padded = first == '0' && c - begin > 1;
  const bool goes_on = c != end && (*c == '.' || *c == 'e' || *c == 'E');
  if (c == begin || padded || goes_on) fail();
  return failed_ ? 0 : out;
}

// A number, true, false or null: not looked at further.
void JsonScanner::skip_word() {
  const std::size_t begin = at_;
  const auto is_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '+' ||
           c == '.';
  };
  while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
  if (at_ == begin) fail();
}

void JsonScanner::skip() {
  int depth = 0;
  do {
    const char c = peek();
    if (c == '"') {
      quoted();
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) fail();
      ++at_;
    } else if (depth > 0 && (c == '}' || c == ']')) {
      --depth;
      ++at_;
    } else if (depth > 0 && (c == ',' || c == ':')) {
      ++at_;
    } else {
      skip_word();
    }
  } while (depth > 0 && !failed_);
  first_ = false;
}

void JsonScanner::finish() {
  if (peek() != '\0' || at_ < text_.size()) fail();
}

}  // namespace ullage
