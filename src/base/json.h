// Reading JSON with errors that name the key.
//
// JsonObject is a view of one object of a parsed document and of the path that led there, so that a wrong value is
// reported as "config.json: text_config.hidden_size: ...". Keys are read on demand; numbers are range-checked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace ullage {

using Json = nlohmann::ordered_json;

// Configurations are kilobytes; anything beyond this is not one and is refused unread.
inline constexpr std::int64_t kMaxJsonBytes = 4 * 1024 * 1024;
inline constexpr int kMaxJsonDepth = 64;

// Parses a whole document. Fails on syntax (with the byte offset), on depth beyond kMaxJsonDepth, on size. Of a key
// that an object has twice the last value counts. The NaN, Infinity and -Infinity that Python writes without quotes are
// read as texts, so that they are refused only where a number is wanted.
Expected<Json> parse_json(std::string_view text, std::string_view where);

// A text or a value for an error message: one line, at most 60 bytes and then "...".
std::string excerpt(std::string_view text);
std::string value_excerpt(const Json& value);

class JsonObject {
 public:
  // `value` must outlive the view. Not an object: reads as an empty one (callers check is_object first).
  JsonObject(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  bool has(std::string_view key) const;           // present and not null
  bool contains(std::string_view key) const;      // present, perhaps null
  const Json* find(std::string_view key) const;   // nullptr when absent or null
  std::string where(std::string_view key) const;  // "file: path.key"
  const std::string& where() const { return where_; }
  const Json& json() const { return *value_; }

  // A whole number in [low, high]; absent gives the fallback.
  Expected<std::int64_t> integer(std::string_view key, std::int64_t fallback, std::int64_t low,
                                 std::int64_t high) const;
  Expected<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high) const;  // required
  Expected<double> number(std::string_view key, double fallback) const;
  Expected<bool> boolean(std::string_view key, bool fallback) const;
  Expected<std::string> string(std::string_view key, std::string_view fallback) const;
  Expected<std::vector<std::string>> strings(std::string_view key) const;  // absent: empty
  // The nested object under `key`, or an error that says it is none.
  Expected<JsonObject> object(std::string_view key) const;

 private:
  const Json* value_;
  std::string where_;
};

}  // namespace ullage
