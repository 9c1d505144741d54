// What cards draw, and the power supply that a machine with them wants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "hardware/gpu.h"

namespace ullage::hardware {

// Watts. Board power is per board; a board of two devices counts once for both.
struct PowerNeed {
  std::int64_t cards_w = 0;
  std::optional<std::int64_t> supply_w;  // of the whole machine; none for cards that live in servers or laptops
  bool recommended = false;  // the vendor's figure for one such card, further cards added at their board power
  std::string source;
};

// Nothing where the card's board power is not known. `lines` are those of data/power_supplies.jsonl, sorted by id.
// A card that no row knows: its board power and kRestOfMachineWatts, rounded up to 50.
Expected<std::optional<PowerNeed>> parse_power_need(std::string_view lines, const Gpu& gpu, std::int64_t count);

// The built-in rows.
std::optional<PowerNeed> power_need(const Gpu& gpu, std::int64_t count);

// What vendors leave for the processor, the fans and the peaks when they recommend a supply: 350 to 490 W over the rows
// of data/power_supplies.jsonl whose card draws 200 W or more. A rule of thumb.
inline constexpr std::int64_t kRestOfMachineWatts = 450;

}  // namespace ullage::hardware
