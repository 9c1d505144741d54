// What SGLang's releases take as defaults, and what was measured of them: rows of data/engines/sglang.jsonl.
#pragma once

#include <string_view>
#include <vector>

#include "engines/serving/rules.h"
#include "engines/sglang/version.h"

namespace ullage::engines::sglang {

using serving::Bound;
using serving::Rule;
using serving::Surroundings;

// Of the built-in rows; a test holds that each item has one for any surroundings.
Rule rule(std::string_view item, const Surroundings& around);

// The figure of the row that fits, at the end of its range that `around` asks for.
double figure(std::string_view item, const Surroundings& around);

// The same as a whole number.
std::int64_t count(std::string_view item, const Surroundings& around);

// All built-in rows, in the file's order.
std::vector<Rule> rules();

}  // namespace ullage::engines::sglang
