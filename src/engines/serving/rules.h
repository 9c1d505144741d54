// What releases of engines take as defaults, and what was measured of them: rows of data/engines/*.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "engines/serving/version.h"
#include "hardware/gpu.h"

namespace ullage::engines::serving {

enum class RuleKind : std::uint8_t {
  documented,    // it stands in the release's code or documents
  derived,       // follows from those
  measured_fit,  // read off logs; a range goes with it
  guess,         // by analogy; nobody measured it
};

// Which end of what is known of measured figures is meant.
enum class Bound : std::uint8_t { low, middle, high };

struct Rule {
  std::string id;
  std::string item;
  double value = 0;
  double low = 0;  // of a measured fit or a guess; otherwise both are `value`
  double high = 0;
  RuleKind kind = RuleKind::documented;
  std::string since;   // releases it holds for, as the row writes them; empty: no bound
  std::string before;  // not included
  std::string limits;  // what else must hold: "Hopper, tp >= 2"; empty: nothing
  std::string source;

  double at(Bound bound) const { return bound == Bound::low ? low : bound == Bound::high ? high : value; }
};

std::string_view name_of(RuleKind kind);

// What a rule may depend on.
struct Surroundings {
  Version version;
  const hardware::Gpu* gpu = nullptr;  // none: unknown
  std::int64_t tensor_parallel_size = 1;
  std::int64_t pipeline_parallel_size = 1;
  Bound bound = Bound::middle;
  std::string_view family = {};  // of the model, as configurations call it
  bool mixture = false;          // its layers have experts
};

// The first row of the item that fits. Fails where no row does: the item is not known for this release.
Expected<Rule> parse_rule(std::string_view lines, std::string_view item, const Surroundings& around);

Expected<std::vector<Rule>> parse_rules(std::string_view lines);

}  // namespace ullage::engines::serving
