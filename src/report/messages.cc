#include "report/messages.h"

#include <algorithm>

#include "base/printable.h"

namespace ullage::report {
namespace {

constexpr TextRow kRows[] = {
#define ULLAGE_TEXT(key, en, zh) {#key, en, zh},
#include "report/messages.inc"
#undef ULLAGE_TEXT
};

struct Shown {
  const Wording& wording;
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(Bytes bytes) const { return format_bytes(bytes.value, wording.unit); }
  std::string operator()(Count count) const { return with_separators(count.value); }
  std::string operator()(const std::string& given) const { return printable(given); }
  std::string operator()(Text key) const { return std::string(text(key, wording.language)); }
};

// What stands in the place called `name`, or the place itself.
std::string filled(const Message& message, std::string_view name, const Wording& wording) {
  const auto found = std::find_if(message.values.begin(), message.values.end(),
                                  [&](const auto& value) { return value.first == name; });
  if (found == message.values.end()) return std::string("{").append(name).append("}");
  return std::visit(Shown{wording}, found->second);
}

}  // namespace

std::span<const TextRow> all_texts() { return kRows; }

std::string_view text(Text key, Language language) {
  const TextRow& row = kRows[static_cast<std::size_t>(key)];
  return language == Language::zh ? row.zh : row.en;
}

std::string render(const Message& message, const Wording& wording) {
  std::string out;
  std::string_view rest = text(message.key, wording.language);
  for (std::size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) break;
    out += rest.substr(0, open);
    out += filled(message, rest.substr(open + 1, close - open - 1), wording);
    rest.remove_prefix(close + 1);
  }
  return out.append(rest);
}

std::string with_separators(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(digits.begin() + at, ',');
  }
  return digits;
}

}  // namespace ullage::report
