// Expected failure is a value: every function that reads input returns Expected<T>.
//
// An Error's text reads "where: message". `where` names the file and byte offset, the line, or the
// configuration key; `message` says what is wrong, what was expected and what to do.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace ullage {

// A closed list: callers decide on the code, people read the message.
enum class ErrorCode {
  invalid_argument,  // an option or a value that cannot be meant
  not_found,         // no such file, model, GPU or key
  malformed,         // the bytes are not what the format demands
  too_large,         // refused before anything was allocated for it
  unsupported,       // valid, but nothing here models it
  io,                // the operating system said no
  internal,          // our own fault
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string where;
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string where, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where)});
}

// "where: message", or the message alone when it has no place.
inline std::string to_string(const Error& error) {
  return error.where.empty() ? error.message : error.where + ": " + error.message;
}

}  // namespace ullage
