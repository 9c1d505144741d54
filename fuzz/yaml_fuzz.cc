// Bytes as a configuration file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/yaml.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

int depth_of(const Json& json) {
  int deepest = 0;
  if (json.is_structured()) {
    for (const Json& item : json) deepest = std::max(deepest, depth_of(item));
  }
  return deepest + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = launch::parse_yaml(text, "config.yaml");
  if (!json) {
    require(!json.error().message.empty());
    require(to_string(json.error()).find('\n') == std::string::npos);
    require(to_string(json.error()).size() < 500);
    return 0;
  }
  require(depth_of(*json) <= kMaxJsonDepth + 2);
  require(!json->dump(-1, ' ', false, Json::error_handler_t::replace).empty());
  return 0;
}
