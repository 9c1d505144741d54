// How much of a card's memory programs can share: the runtime's own figure, or a rule of data/usable_memory.jsonl.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "hardware/gpu.h"

namespace ullage::hardware {

// usable = ratio * basis - gap, for the low, the middle and the high end.
struct UsableRule {
  std::string name;
  bool guess = false;
  std::string vendor;                        // empty: any
  bool unified_memory = false;               // only cards that have it
  bool inline_ecc = false;                   // only cards that have it
  bool by_nvidia_smi = false;                // the basis is nvidia-smi's total; else the datasheet's size
  std::int64_t datasheet_at_most_bytes = 0;  // 0: no limit
  std::array<double, 3> ratio{};
  std::array<double, 3> gap_bytes{};
  std::string source;
};

// Rules are tried in the order of the file.
Expected<std::vector<UsableRule>> parse_usable_rules(std::string_view lines);

// Other runtime totals that were reported for the same card; Windows ones raise no bound, because there the driver
// lends system memory and reports the whole card.
struct SeenTotal {
  std::int64_t bytes = 0;
  std::int64_t precision_bytes = 0;
  bool windows = false;
};

// Fills the usable_… members from the others. `windows`: the runtime's total was read on Windows, so the low end is
// what a rule gives for Linux.
void decide_usable(Gpu& gpu, bool windows, const std::vector<SeenTotal>& seen, const std::vector<UsableRule>& rules);

}  // namespace ullage::hardware
