// What vLLM's releases take as defaults, and what was measured of them: rows of data/engines_vllm.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "engines/vllm/version.h"
#include "hardware/gpu.h"

namespace ullage::engines::vllm {

enum class RuleKind : std::uint8_t {
  documented,    // it stands in the release's code or documents
  derived,       // follows from those
  measured_fit,  // read off logs; a range goes with it
  guess,         // by analogy; nobody measured it
};

struct Rule {
  std::string id;
  std::string item;
  double value = 0;
  double low = 0;  // of a measured fit; otherwise both are `value`
  double high = 0;
  RuleKind kind = RuleKind::documented;
  std::string source;
};

// What a rule may depend on.
struct Surroundings {
  Version version = kNewest;
  const hardware::Gpu* gpu = nullptr;  // none: unknown
  std::int64_t tensor_parallel_size = 1;
  std::int64_t pipeline_parallel_size = 1;
};

// The first row of the item that fits. Fails where no row does: the item is not known for this release.
Expected<Rule> parse_rule(std::string_view lines, std::string_view item, const Surroundings& around);

// Of the built-in rows; a test holds that each item has one for any surroundings.
Rule rule(std::string_view item, const Surroundings& around);

// All rows, in the file's order.
Expected<std::vector<Rule>> parse_rules(std::string_view lines);

}  // namespace ullage::engines::vllm
