// What releases of these engines take as defaults, and what their rules are: rows of data/engines/<engine>.jsonl, in
// the form of vLLM's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engines/budget/options.h"
#include "engines/vllm/rules.h"

namespace ullage::engines::budget {

using vllm::Rule;

// The first row of the item that fits the release and the card; a test holds that each item has one for every release.
Rule rule(const Options& options, std::string_view item, const hardware::Gpu* gpu);
Rule rule(Engine engine, Version version, std::string_view item, const hardware::Gpu* gpu);

// All rows, in the file's order.
std::vector<Rule> rules(Engine engine);

// "0.9.2", "v1.2.0rc3"; MindIE's "2.1.RC1" is 2.1.
Expected<Version> parse_version(Engine engine, std::string_view text, std::string_view where);

}  // namespace ullage::engines::budget
