#include "report/json_parts.h"

namespace ullage::report {

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json messages_json(const std::vector<Message>& messages) {
  Json out = Json::array();
  for (const Message& message : messages) out.push_back(render(message, {Language::en, Unit::gib}));
  return out;
}

std::string printed(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace ullage::report
