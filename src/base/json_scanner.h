// JSON read from front to back without building a document: headers and indices of many megabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage {

// A reader of `{"a": [1, 2]}` asks for what it expects:
//
//     scanner.enter_object();
//     while (scanner.next_member()) {
//       if (scanner.key() == "a") { scanner.enter_array(); while (scanner.next_element()) sum += scanner.whole(); }
//       else scanner.skip();
//     }
//     scanner.finish();
//
// After the first thing that is not as asked for, everything reads as empty or 0, loops end and failed() is true.
// Nothing is allocated but for texts with escapes. `text` must outlive the scanner.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text), has_escapes_(text.find('\\') != text.npos) {}

  void enter_object() { enter('{'); }
  // Whether there is another member; its key is read, its value is next.
  bool next_member();
  void enter_array() { enter('['); }
  bool next_element() { return next(']'); }

  std::string_view key() const { return key_; }  // until the next member
  // Views of the document, or, where text_was_escaped(), of a buffer that lasts until the next text or key.
  std::string_view text();
  bool text_was_escaped() const { return escaped_; }
  std::int64_t whole();  // a whole number from 0 to 2^63 - 1
  void skip();           // any value

  bool text_is_next() { return peek() == '"'; }
  bool digit_is_next() {
    const char c = peek();
    return c >= '0' && c <= '9';
  }
  bool object_is_next() { return peek() == '{'; }
  void finish();  // nothing but blanks may follow

  // For documents that nearly always have one form. Goes behind `words` if they come next, as they are, blanks too;
  // else nothing happens. go_back() leads to where at() was, if no object or array has been entered or left since.
  bool skip_exactly(std::string_view words) {
    if (failed_ || text_.size() - at_ < words.size()) return false;
    if (std::memcmp(text_.data() + at_, words.data(), words.size()) != 0) return false;
    at_ += words.size();
    return true;
  }
  void go_back(std::size_t at) { at_ = at; }

  bool failed() const { return failed_; }
  // Where the scanner stands: after a failure, where it went wrong.
  std::size_t at() const { return at_; }

 private:
  void fail() { failed_ = true; }
  // What is next but for blanks; '\0': nothing is.
  char peek() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool blank = c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
      if (!blank) return failed_ ? '\0' : c;
    }
    return '\0';
  }
  bool take(char wanted);
  void enter(char opening);
  bool next(char closing);
  std::string_view quoted();
  std::string_view quoted_with_escapes();
  bool unescape(std::string_view raw);
  bool append_code_unit(std::string_view raw, std::size_t& at);
  void skip_word();

  std::string_view text_;
  bool has_escapes_ = false;  // somewhere: nearly no document has, which then need not be asked of each text
  std::size_t at_ = 0;
  bool failed_ = false;
  bool first_ = false;  // nothing of the innermost object or array has been read yet
  bool escaped_ = false;
  std::string_view key_;
  std::string key_buffer_;
  std::string buffer_;
};

}  // namespace ullage
