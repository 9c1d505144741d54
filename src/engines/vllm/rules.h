// What vLLM's releases take as defaults, and what was measured of them: rows of data/engines/vllm.jsonl.
#pragma once

#include <string_view>
#include <vector>

#include "engines/serving/rules.h"
#include "engines/vllm/version.h"

namespace ullage::engines::vllm {

using serving::Bound;
using serving::name_of;
using serving::parse_rule;
using serving::parse_rules;
using serving::Rule;
using serving::RuleKind;
using serving::Surroundings;

// Of the built-in rows; a test holds that each item has one for any surroundings.
Rule rule(std::string_view item, const Surroundings& around);

// The figure of the row that fits, at the end of its range that `around` asks for.
double figure(std::string_view item, const Surroundings& around);

// All built-in rows, in the file's order.
std::vector<Rule> rules();

}  // namespace ullage::engines::vllm
