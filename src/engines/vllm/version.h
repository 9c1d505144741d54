// A release as vLLM numbers them.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage::engines::vllm {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const Version&) const = default;
};

// "0.19.0", "v0.7", "0.23.1rc1" (what follows the numbers does not count).
Expected<Version> parse_version(std::string_view text, std::string_view where);
std::string to_string(Version version);

// The newest whose rules were read.
inline constexpr Version kNewest{0, 23, 1};

// The rewritten engine, which is the default from here on.
inline constexpr Version kV1{0, 8, 0};
// Layers with windows and states share a pool with the others; before, windows were kept as if they were full.
inline constexpr Version kHybridPools{0, 9, 2};
// The log's "GPU KV cache size" is what requests of max_model_len can hold; before, it is blocks over groups.
inline constexpr Version kPrintsCapacity{0, 21, 0};

constexpr bool is_v1(Version version) { return version >= kV1; }

}  // namespace ullage::engines::vllm
