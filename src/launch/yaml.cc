#include "launch/yaml.h"

#include <fmt/core.h>
#include <yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

namespace ullage::launch {
namespace {

struct ParserDeleter {
  void operator()(yaml_parser_t* parser) const {
    yaml_parser_delete(parser);
    delete parser;
  }
};
using Parser = std::unique_ptr<yaml_parser_t, ParserDeleter>;

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { clear(); }
  bool next(yaml_parser_t& parser) {
    clear();
    filled_ = yaml_parser_parse(&parser, &event_) != 0;
    return filled_;
  }
  const yaml_event_t& operator*() const { return event_; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  void clear() {
    if (filled_) yaml_event_delete(&event_);
    filled_ = false;
  }
  yaml_event_t event_{};
  bool filled_ = false;
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Source: the resolver of PyYAML, yaml/resolver.py, which is YAML 1.1's: https://yaml.org/type/
std::optional<bool> truth_of(std::string_view text) {
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  return std::nullopt;
}

std::optional<std::int64_t> whole_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  int base = 10;
  if (digits.size() > 2 && (digits.starts_with("0x") || digits.starts_with("0b"))) {
    base = digits[1] == 'x' ? 16 : 2;
    digits.erase(0, 2);
  } else if (digits.size() > 1 && digits.front() == '0') {
    base = 8;
  }
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || digits.front() == '-' || fault != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return negative ? -value : value;
}

// With a point in it: YAML 1.1 takes 1e3 for a text.
std::optional<double> number_of(const std::string& text) {
  const bool shaped = text.find('.') != std::string::npos && std::all_of(text.begin(), text.end(), [](char c) {
                        return std::isdigit(static_cast<unsigned char>(c)) != 0 ||
                               std::string_view(".eE+-").find(c) != std::string_view::npos;
                      });
  if (!shaped || std::none_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

Json plain_value(std::string text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (const auto truth = truth_of(text)) return *truth;
  if (const auto whole = whole_of(text)) return *whole;
  if (const auto number = number_of(text)) return *number;
  return text;
}

class Reader {
 public:
  Reader(yaml_parser_t& parser, std::string_view where) : parser_(parser), where_(where) {}

  Expected<Json> run() {
    for (;;) {
      if (!event_.next(parser_)) return syntax();
      if (event_->type == YAML_STREAM_END_EVENT) return Json();
      if (event_->type == YAML_DOCUMENT_START_EVENT) break;
    }
    if (!event_.next(parser_)) return syntax();
    return value(0);
  }

 private:
  // Of the event that was read.
  Expected<Json> value(int depth) {
    if (depth > kMaxJsonDepth) return refuse(ErrorCode::too_large, fmt::format("nested deeper than {}", kMaxJsonDepth));
    if (++values_ > kMostYamlValues)
      return refuse(ErrorCode::too_large, fmt::format("more than {} values", kMostYamlValues));
    switch (event_->type) {
      case YAML_SCALAR_EVENT: return scalar();
      case YAML_SEQUENCE_START_EVENT: return sequence(depth);
      case YAML_MAPPING_START_EVENT: return mapping(depth);
      case YAML_ALIAS_EVENT: return refuse(ErrorCode::unsupported, "aliases are not read; write the value out");
      default: return refuse(ErrorCode::malformed, "expected a value");
    }
  }

  std::string text() const {
    return {reinterpret_cast<const char*>(event_->data.scalar.value), event_->data.scalar.length};
  }

  Expected<Json> scalar() const {
    if (event_->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) return plain_value(text());
    return Json(text());
  }

  Expected<Json> sequence(int depth) {
    Json out = Json::array();
    for (;;) {
      if (!event_.next(parser_)) return syntax();
      if (event_->type == YAML_SEQUENCE_END_EVENT) return out;
      auto item = value(depth + 1);
      if (!item) return item;
      out.push_back(*std::move(item));
    }
  }

  Expected<Json> mapping(int depth) {
    Json out = Json::object();
    for (;;) {
      if (!event_.next(parser_)) return syntax();
      if (event_->type == YAML_MAPPING_END_EVENT) return out;
      if (event_->type != YAML_SCALAR_EVENT) return refuse(ErrorCode::unsupported, "expected a word as a key");
      const std::string key = text();
      if (key == "<<") return refuse(ErrorCode::unsupported, "merge keys are not read; write the values out");
      if (!event_.next(parser_)) return syntax();
      auto item = value(depth + 1);
      if (!item) return item;
      out[key] = *std::move(item);
    }
  }

  tl::unexpected<Error> refuse(ErrorCode code, std::string message) const {
    return fail(code, fmt::format("{}: line {}", where_, event_->start_mark.line + 1), std::move(message));
  }

  tl::unexpected<Error> syntax() const {
    const char* problem = parser_.problem == nullptr ? "no YAML" : parser_.problem;
    return fail(ErrorCode::malformed, fmt::format("{}: line {}", where_, parser_.problem_mark.line + 1),
                fmt::format("{}; expected YAML", excerpt(problem)));
  }

  yaml_parser_t& parser_;
  std::string_view where_;
  Event event_;
  int values_ = 0;
};

}  // namespace

Expected<Json> parse_yaml(std::string_view text, std::string_view where) {
  if (text.size() > kMostYamlBytes)
    return fail(ErrorCode::too_large, std::string(where), fmt::format("longer than {} bytes", kMostYamlBytes));
  auto raw = std::make_unique<yaml_parser_t>();
  if (yaml_parser_initialize(raw.get()) == 0)
    return fail(ErrorCode::internal, std::string(where), "the reader of YAML has no memory");
  const Parser parser(raw.release());
  yaml_parser_set_input_string(parser.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  return Reader(*parser, where).run();
}

}  // namespace ullage::launch
