// JSON documents that are larger than a configuration: recordings and logs.
#pragma once

#include "base/json.h"

namespace ullage {

// As parse_json, for documents of up to `most_bytes`.
Expected<Json> parse_large_json(std::string_view text, std::string_view where, std::int64_t most_bytes);

}  // namespace ullage
