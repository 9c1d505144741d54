// A footprint: every byte has a line, the lines add up to the total, and what nobody knows is `unattributed`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/component.h"

namespace ullage::memory {

// Which total a line belongs to. Each level contains the one before: process ⊇ reserved ⊇ allocated.
enum class Level : std::uint8_t { allocated, reserved, process };

// Where a number comes from: a rule in words or as a formula, the values put in, and the source of the rule.
struct Why {
  std::string rule;
  std::vector<std::pair<std::string, std::int64_t>> values;
  std::string source;
};

struct Line {
  Component component = Component::unattributed;
  std::int64_t bytes = 0;
  Level level = Level::allocated;
  Why why;
};

struct Range {
  std::int64_t low_bytes = 0;
  std::int64_t high_bytes = 0;
};

struct Footprint {
  std::vector<Line> lines;
  std::int64_t allocated_bytes = 0;            // sum of the lines at Level::allocated
  std::optional<std::int64_t> reserved_bytes;  // plus those at Level::reserved; absent: not computed
  std::optional<std::int64_t> process_bytes;   // plus those at Level::process; absent: not computed
  std::optional<Range> reserved_range;
  std::optional<Range> process_range;
};

// Whether the lines of each level that is known add up to its total.
bool adds_up(const Footprint& footprint);

}  // namespace ullage::memory
