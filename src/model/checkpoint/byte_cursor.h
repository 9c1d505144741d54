// Little-endian values one behind the other, read through a window over a source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace ullage::model {

// Keeps the first error; from then on everything reads as zero or empty.
class ByteCursor {
 public:
  explicit ByteCursor(ByteSource& source) : source_(source) {}

  std::int64_t at() const { return at_; }
  std::int64_t left() const { return source_.size_bytes() - at_; }
  const std::optional<Error>& error() const { return error_; }

  template <class T>
  T value() {
    T out{};
    if (const std::string_view bytes = take(sizeof(T)); !bytes.empty()) std::memcpy(&out, bytes.data(), sizeof(T));
    return out;
  }

  // The next `length` bytes, which must be more than none; empty after an error.
  std::string_view take(std::int64_t length) {
    if (!reach(length)) return {};
    const auto begin = static_cast<std::size_t>(at_ - window_at_);
    at_ += length;
    return window_.substr(begin, static_cast<std::size_t>(length));
  }

  // Passes over bytes without reading them.
  void skip(std::int64_t length) {
    if (error_) return;
    if (length < 0 || length > left()) return ends_early(length);
    at_ += length;
  }

  // At the place where the cursor stands.
  void fail_here(ErrorCode code, std::string message) { fail_at(at_, code, std::move(message)); }

  void fail_at(std::int64_t at, ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message), source_.name() + ": byte " + std::to_string(at)};
  }

 private:
  static constexpr std::int64_t kFirstWindow = 64 * 1024;
  static constexpr std::int64_t kLargestWindow = 8 * 1024 * 1024;

  bool reach(std::int64_t length) {
    if (error_) return false;
    if (length < 0 || length > left()) {
      ends_early(length);
      return false;
    }
    if (at_ >= window_at_ && at_ + length <= window_at_ + static_cast<std::int64_t>(window_.size())) return true;
    const auto read = source_.read(at_, std::min(left(), std::max(length, next_window_)));
    next_window_ = std::min(2 * next_window_, kLargestWindow);
    if (!read) {
      error_ = read.error();
      return false;
    }
    window_ = *read;
    window_at_ = at_;
    return true;
  }

  void ends_early(std::int64_t length) {
    fail_here(ErrorCode::malformed, "the file ends at byte " + std::to_string(source_.size_bytes()) + ", " +
                                        (length < 0 ? "more than 2^63" : std::to_string(length)) +
                                        " bytes were expected here; fetch the whole file again");
  }

  ByteSource& source_;
  std::int64_t at_ = 0;
  std::string_view window_;
  std::int64_t window_at_ = 0;
  std::int64_t next_window_ = kFirstWindow;
  std::optional<Error> error_;
};

}  // namespace ullage::model
