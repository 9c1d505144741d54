#include "hardware/power.h"

#include "base/json.h"
#include "base/lines.h"
#include "data/power_supplies.h"

namespace ullage::hardware {
namespace {

// A card that is put into somebody's own machine.
bool sits_in_a_slot(const Gpu& gpu) { return gpu.form_factor == "PCIe"; }

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

// No source: no row.
struct Recommendation {
  std::int64_t supply_w = 0;
  std::string source;
};

Expected<Recommendation> find_recommendation(std::string_view lines, const std::string& id) {
  const auto key = [](std::string_view line) { return quoted_after(line, R"({"id":")"); };
  const std::string_view line = find_sorted_line(lines, id, key);
  if (line.empty()) return Recommendation{};
  const auto json = parse_json(line, "power_supplies");
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, "power_supplies");
  const auto supply = row.integer("supply_w", 1, 100'000);
  if (!supply) return tl::unexpected<Error>(supply.error());
  return row.string("source", "").map([&](std::string source) { return Recommendation{*supply, std::move(source)}; });
}

}  // namespace

Expected<std::optional<PowerNeed>> parse_power_need(std::string_view lines, const Gpu& gpu, std::int64_t count) {
  if (!gpu.tdp_w) return std::nullopt;
  const std::int64_t boards = (count + gpu.devices_per_card - 1) / gpu.devices_per_card;
  PowerNeed out;
  out.cards_w = *gpu.tdp_w * boards;
  if (!sits_in_a_slot(gpu)) return out;
  auto known = find_recommendation(lines, gpu.id);
  if (!known) return tl::unexpected<Error>(known.error());
  out.recommended = !known->source.empty();
  out.source = std::move(known->source);
  const std::int64_t one = out.recommended ? known->supply_w : *gpu.tdp_w + kRestOfMachineWatts;
  out.supply_w = round_up(one + *gpu.tdp_w * (boards - 1), 50);
  return out;
}

std::optional<PowerNeed> power_need(const Gpu& gpu, std::int64_t count) {
  return parse_power_need(data::power_supplies(), gpu, count).value_or(std::nullopt);
}

}  // namespace ullage::hardware
