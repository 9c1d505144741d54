// A list of values for one option, each of which is to be run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace ullage::plan {

struct Sweep {
  std::string option;  // "--seq-len"
  std::vector<std::string> values;
};

inline constexpr std::size_t kMostValues = 256;
inline constexpr std::int64_t kMostSteps = 32;

// "seq-len=1024,2048" or "seq-len=1024..8192": all whole numbers of the range where there are at most kMostSteps, else
// the first one doubled until the last one, which is there in any case. The option may be written with its dashes, and
// with underscores as the JSON has it. Fails on anything else, and on more than kMostValues values.
Expected<Sweep> parse_sweep(std::string_view text);

}  // namespace ullage::plan
