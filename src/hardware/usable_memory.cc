#include "hardware/usable_memory.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/lines.h"

namespace ullage::hardware {
namespace {

Expected<void> read_ends(const JsonObject& row, std::string_view key, double scale, std::array<double, 3>& out) {
  const Json* list = row.find(key);
  if (list == nullptr || !list->is_array() || list->size() != 3) {
    return fail(ErrorCode::malformed, row.where(key), "expected three numbers: low, middle, high");
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(*list)[i].is_number()) return fail(ErrorCode::malformed, row.where(key), "expected a number");
    out[i] = (*list)[i].get<double>() * scale;
  }
  return {};
}

Expected<UsableRule> parse_rule(std::string_view line) {
  const auto json = parse_json(line, "usable_memory");
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, "usable_memory");
  UsableRule rule;
  rule.name = row.string("name", "").value_or("");
  rule.guess = row.string("kind", "").value_or("") == "guess";
  rule.vendor = row.string("vendor", "").value_or("");
  rule.unified_memory = row.boolean("unified_memory", false).value_or(false);
  rule.inline_ecc = row.boolean("inline_ecc", false).value_or(false);
  rule.by_nvidia_smi = row.string("basis", "").value_or("") == "nvidia_smi";
  rule.datasheet_at_most_bytes = row.integer("datasheet_at_most_gb", 0, 0, 100000).value_or(0) * kGiB;
  rule.source = row.string("source", "").value_or("");
  if (auto read = read_ends(row, "ratio", 1, rule.ratio); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_ends(row, "gap_mib", static_cast<double>(kMiB), rule.gap_bytes); !read) {
    return tl::unexpected<Error>(read.error());
  }
  return rule;
}

bool applies(const UsableRule& rule, const Gpu& gpu) {
  if (!rule.vendor.empty() && rule.vendor != gpu.vendor) return false;
  if (rule.by_nvidia_smi && !gpu.nvidia_smi_total_bytes) return false;
  if (rule.unified_memory && !gpu.unified_memory) return false;
  if (rule.inline_ecc && !gpu.inline_ecc) return false;
  return rule.datasheet_at_most_bytes == 0 || gpu.datasheet_bytes <= rule.datasheet_at_most_bytes;
}

std::int64_t end_of(const UsableRule& rule, std::int64_t basis, std::size_t end) {
  const double bytes = rule.ratio[end] * static_cast<double>(basis) - rule.gap_bytes[end];
  return std::clamp<std::int64_t>(std::llround(bytes), 0, basis);
}

void apply(const UsableRule& rule, Gpu& gpu) {
  const std::int64_t basis = rule.by_nvidia_smi ? *gpu.nvidia_smi_total_bytes : gpu.datasheet_bytes;
  gpu.usable_range_bytes = {end_of(rule, basis, 0), end_of(rule, basis, 2)};
  gpu.usable_bytes = end_of(rule, basis, 1);
  gpu.usable_basis = rule.guess           ? UsableBasis::guess
                     : rule.by_nvidia_smi ? UsableBasis::nvidia_smi_rule
                                          : UsableBasis::datasheet_rule;
  gpu.usable_source = rule.name + ": " + rule.source;
}

void widen(ByteRange& range, std::int64_t bytes, std::int64_t precision) {
  range.low = std::min(range.low, bytes - precision);
  range.high = std::max(range.high, bytes + precision);
}

}  // namespace

Expected<std::vector<UsableRule>> parse_usable_rules(std::string_view lines) {
  std::vector<UsableRule> rules;
  std::optional<Error> error;
  for_each_line(lines, [&](std::string_view line) {
    auto rule = parse_rule(line);
    if (rule) rules.push_back(std::move(*rule));
    else if (!error) error = rule.error();
  });
  if (error) return tl::unexpected<Error>(*error);
  return rules;
}

void decide_usable(Gpu& gpu, bool windows, const std::vector<SeenTotal>& seen, const std::vector<UsableRule>& rules) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const UsableRule& r) { return applies(r, gpu); });
  if (rule != rules.end()) apply(*rule, gpu);
  if (!gpu.runtime_total_bytes) return;

  const std::int64_t total = *gpu.runtime_total_bytes;
  ByteRange range{total, total};
  if (windows && rule != rules.end()) range.low = std::min(total, gpu.usable_range_bytes.low);
  widen(range, total, gpu.runtime_total_precision_bytes);
  for (const SeenTotal& other : seen) {
    if (!other.windows) widen(range, other.bytes, other.precision_bytes);
  }
  // nvidia-smi's total has no part of a MiB, what the runtime sees lies within the card.
  gpu.memory_bytes = std::max(gpu.memory_bytes, total);
  range.high = std::min(range.high, gpu.memory_bytes);
  gpu.usable_bytes = total;
  gpu.usable_range_bytes = range;
  gpu.usable_basis = UsableBasis::runtime_total;
}

}  // namespace ullage::hardware
