// Every text that people read, in every language: a catalogue of templates with named places.
//
// A report holds Messages, which are values (a template's key and what stands in its places); a renderer turns them
// into a text when language and units are known. JSON always takes English, so that it does not depend on LANG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"

namespace ullage::report {

enum class Language : std::uint8_t { en, zh };

// Keys of the catalogue; the texts stand in messages.inc.
enum class Text : std::uint16_t {
#define ULLAGE_TEXT(key, en, zh) key,
#include "report/messages.inc"
#undef ULLAGE_TEXT
};

struct TextRow {
  std::string_view key;
  std::string_view en;
  std::string_view zh;
};

// All rows, indexed by Text.
std::span<const TextRow> all_texts();
std::string_view text(Text key, Language language);

struct Bytes {
  std::int64_t value = 0;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

// A count that is shown with separators: 8,030,261,248.
struct Count {
  std::int64_t value = 0;
  friend bool operator==(const Count&, const Count&) = default;
};

using Value = std::variant<std::int64_t, Bytes, Count, std::string, Text>;

struct Message {
  Text key{};
  std::vector<std::pair<std::string_view, Value>> values;  // by the place's name
  friend bool operator==(const Message&, const Message&) = default;
};

struct Wording {
  Language language = Language::en;
  Unit unit = Unit::gib;
};

// The template with its places filled; a place without a value stays as it is.
std::string render(const Message& message, const Wording& wording = {});

std::string with_separators(std::int64_t number);

}  // namespace ullage::report
