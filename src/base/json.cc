#include "base/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json_large.h"

namespace ullage {
namespace {

Expected<std::int64_t> whole_number(const Json& value, const std::string& where, std::int64_t low, std::int64_t high) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::malformed, where,
                fmt::format("{} is {}; expected a whole number from {} to {}", value_excerpt(value), what, low, high));
  };
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return wrong("out of range");
  }
  std::int64_t number = 0;
  if (value.is_number_integer()) {
    number = value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const double real = value.get<double>();
    if (std::floor(real) != real || std::fabs(real) > 9e15) return wrong("not a whole number");
    number = static_cast<std::int64_t>(real);
  } else {
    return wrong("not a number");
  }
  if (number < low || number > high) return wrong("out of range");
  return number;
}

// Counts nesting before the parser recurses, so that a file of brackets cannot exhaust the stack.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// The bare word at the beginning of `text` that Python's json writes and JSON does not know; empty: another.
std::string_view bare_word(std::string_view text) {
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
    if (text.starts_with(word)) return word;
  }
  return {};
}

// The document with such words in quotes, and where the quotes were put.
struct Quoted {
  std::string text;
  std::vector<std::size_t> quotes;  // offsets in `text`, ascending

  // Where in the original `byte` (counted from 1) of the text stands.
  std::size_t original(std::size_t byte) const {
    const auto before = std::lower_bound(quotes.begin(), quotes.end(), byte) - quotes.begin();
    return byte - static_cast<std::size_t>(before);
  }
};

Quoted quote_bare_words(std::string_view text) {
  Quoted out;
  out.text.reserve(text.size() + 64);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view word = in_string ? std::string_view() : bare_word(text.substr(i, 9));
    if (!word.empty()) {
      out.quotes.push_back(out.text.size());
      out.text.append("\"").append(word);
      out.quotes.push_back(out.text.size());
      out.text += '"';
      i += word.size();
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const std::size_t taken = in_string && text[i] == '\\' ? 2 : 1;
    out.text.append(text.substr(i, taken));
    i += taken;
  }
  return out;
}

// ordered_json looks for every new key among all before it; a large object goes through a sorted one.
constexpr std::size_t kLargeDocument = 64 * 1024;

Json parse_any(std::string_view text) {
  if (text.size() < kLargeDocument) return Json::parse(text.begin(), text.end());
  return Json(nlohmann::json::parse(text.begin(), text.end()));
}

}  // namespace

Expected<Json> parse_json(std::string_view text, std::string_view where) {
  if (static_cast<std::int64_t>(text.size()) > kMaxJsonBytes) {
    return fail(ErrorCode::too_large, std::string(where),
                fmt::format("{} bytes of JSON; a configuration has at most {}", text.size(), kMaxJsonBytes));
  }
  return parse_large_json(text, where, kMaxJsonBytes);
}

Expected<Json> parse_large_json(std::string_view text, std::string_view where, std::int64_t most_bytes) {
  if (static_cast<std::int64_t>(text.size()) > most_bytes) {
    return fail(ErrorCode::too_large, std::string(where),
                fmt::format("{} bytes of JSON; at most {} are read", text.size(), most_bytes));
  }
  if (too_deep(text)) {
    return fail(ErrorCode::malformed, std::string(where),
                fmt::format("nested deeper than {} levels; this is not a model's configuration", kMaxJsonDepth));
  }
  const bool bare = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
  const Quoted quoted = bare ? quote_bare_words(text) : Quoted{};
  try {
    return parse_any(bare ? std::string_view(quoted.text) : text);
  } catch (const nlohmann::json::parse_error& error) {
    return fail(ErrorCode::malformed, fmt::format("{}: byte {}", where, quoted.original(error.byte)),
                "not valid JSON here; check that the file is whole");
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::malformed, std::string(where), "not valid JSON; a number or a text is out of range");
  }
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out(text.substr(0, kMost));
  // A character cut in the middle is left out.
  while (text.size() > kMost && !out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xc0) == 0x80)
    out.pop_back();
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? out + "..." : out;
}

std::string value_excerpt(const Json& value) {
  if (value.is_object()) return value.empty() ? "{}" : "{...}";
  if (value.is_array()) return value.empty() ? "[]" : "[...]";
  return excerpt(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

const Json* JsonObject::find(std::string_view key) const {
  if (!value_->is_object()) return nullptr;
  const auto found = value_->find(std::string(key));
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonObject::has(std::string_view key) const { return find(key) != nullptr; }

bool JsonObject::contains(std::string_view key) const {
  return value_->is_object() && value_->find(std::string(key)) != value_->end();
}

std::string JsonObject::where(std::string_view key) const { return fmt::format("{}: {}", where_, key); }

Expected<std::int64_t> JsonObject::integer(std::string_view key, std::int64_t fallback, std::int64_t low,
                                           std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  return whole_number(*value, where(key), low, high);
}

Expected<std::int64_t> JsonObject::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return fail(ErrorCode::malformed, where(key), "missing; this kind of model cannot be built without it");
  }
  return whole_number(*value, where(key), low, high);
}

Expected<double> JsonObject::number(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) return fail(ErrorCode::malformed, where(key), "not a number");
  return value->get<double>();
}

Expected<bool> JsonObject::boolean(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return fail(ErrorCode::malformed, where(key), "expected true or false");
  return value->get<bool>();
}

Expected<std::string> JsonObject::string(std::string_view key, std::string_view fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return fail(ErrorCode::malformed, where(key), "expected a text");
  return value->get<std::string>();
}

Expected<std::vector<std::string>> JsonObject::strings(std::string_view key) const {
  std::vector<std::string> out;
  const Json* value = find(key);
  if (value == nullptr) return out;
  if (!value->is_array()) return fail(ErrorCode::malformed, where(key), "expected a list of texts");
  for (const Json& item : *value) {
    if (!item.is_string()) return fail(ErrorCode::malformed, where(key), "expected a list of texts");
    out.push_back(item.get<std::string>());
  }
  return out;
}

Expected<JsonObject> JsonObject::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_object()) return fail(ErrorCode::malformed, where(key), "expected an object");
  return JsonObject(*value, where(key));
}

}  // namespace ullage
