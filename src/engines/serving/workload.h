// What requests of an engine look like.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace ullage::engines::serving {

// Requests of a workload: so many tokens put in, so many given.
struct Workload {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::optional<std::int64_t> concurrency;  // requests at once that are wanted; none: as many as there can be

  // Of one request that are kept in the end: the last token that is given is never put in.
  std::int64_t kept_tokens() const { return std::max<std::int64_t>(1, input_tokens + output_tokens - 1); }
};

}  // namespace ullage::engines::serving
