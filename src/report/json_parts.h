// What the JSON documents have in common: unknown values, lists of messages, the way a document is written out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/messages.h"

namespace ullage::report {

// What is not known is null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text);  // empty: not known

// In English, bytes in the larger units of 1,024.
Json messages_json(const std::vector<Message>& messages);

// With a newline behind it; bytes that are no UTF-8 are replaced.
std::string printed(const Json& json);

}  // namespace ullage::report
