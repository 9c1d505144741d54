#include "hardware/catalogue.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/lines.h"
#include "base/nearest.h"
#include "data/gpus.h"
#include "data/usable_memory.h"
#include "hardware/gpu_row.h"
#include "hardware/usable_memory.h"

namespace ullage::hardware {
namespace {

constexpr std::size_t kShown = 60;  // of a name that was not found

std::string_view id_of(std::string_view line) { return quoted_after(line, "{\"id\":\""); }

// Calls visit(name) for each string of the list that begins behind `before`.
template <class Visit>
void for_each_alias(std::string_view line, Visit visit) {
  constexpr std::string_view before = "\"aliases\":[";
  const std::size_t begin = line.find(before);
  if (begin == std::string_view::npos) return;
  line.remove_prefix(begin + before.size());
  while (line.starts_with('"')) {
    const std::string_view alias = line.substr(1, line.find('"', 1) - 1);
    visit(alias);
    line.remove_prefix(alias.size() + 2);
    if (line.starts_with(',')) line.remove_prefix(1);
  }
}

std::string_view product_name_of(std::string_view line) {
  constexpr std::string_view before = "\"name\":\"";
  const std::size_t begin = line.find(before);
  return begin == std::string_view::npos ? std::string_view() : quoted_after(line.substr(begin), before);
}

// Lower case without blanks, hyphens and underscores, and without the vendor that drivers put in front.
std::string folded(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, 200)) {
    if (c != ' ' && c != '-' && c != '_') out += ascii_lower(c);
  }
  return out.starts_with("nvidia") ? out.substr(6) : out;
}

bool has_name(std::string_view line, std::string_view wanted) {
  if (folded(id_of(line)) == wanted || folded(product_name_of(line)) == wanted) return true;
  bool found = false;
  for_each_alias(line, [&](std::string_view alias) { found = found || folded(alias) == wanted; });
  return found;
}

std::string_view line_of(std::string_view gpus, std::string_view name) {
  const std::string_view by_id = find_sorted_line(gpus, name, id_of);
  if (!by_id.empty()) return by_id;
  const std::string wanted = folded(name);
  std::string_view found;
  for_each_line(gpus, [&](std::string_view line) {
    if (found.empty() && !wanted.empty() && has_name(line, wanted)) found = line;
  });
  return found;
}

tl::unexpected<Error> unknown_gpu(std::string_view name, std::string_view where, std::string_view gpus) {
  std::vector<std::string_view> names;
  for_each_line(gpus, [&](std::string_view line) {
    names.push_back(id_of(line));
    for_each_alias(line, [&](std::string_view alias) { names.push_back(alias); });
  });
  const std::string hint = did_you_mean(nearest_names(name, names));
  return fail(ErrorCode::not_found, std::string(where),
              fmt::format("no GPU named '{}'; {}{}`ullage gpus` lists all", name.substr(0, kShown), hint,
                          hint.empty() ? "" : " "));
}

struct Item {
  std::string_view name;
  std::optional<std::int64_t> count;
};

// Splits "8xh100" where digits and an x stand in front of a name; "6700xt" is a name of its own.
Expected<Item> read_item(std::string_view text, std::string_view where, std::string_view gpus) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const bool counted = digits > 0 && digits + 1 < text.size() && ascii_lower(text[digits]) == 'x';
  if (!counted || !line_of(gpus, text).empty()) return Item{text, std::nullopt};
  std::int64_t count = 0;
  for (char c : text.substr(0, digits)) count = std::min(kMostDevices + 1, count * 10 + (c - '0'));
  if (count < 1 || count > kMostDevices) {
    return fail(ErrorCode::invalid_argument, std::string(where),
                fmt::format("'{}' names {} devices; expected 1 to {}", text.substr(0, kShown),
                            text.substr(0, std::min(digits, kShown)), kMostDevices));
  }
  return Item{text.substr(digits + 1), count};
}

Expected<DeviceGroup> find_group(std::string_view text, std::optional<std::int64_t> total, std::string_view where,
                                 const GpuCatalogue& catalogue) {
  const auto item = read_item(text, where, catalogue.gpus);
  if (!item) return tl::unexpected<Error>(item.error());
  auto gpu = find_gpu(item->name, where, catalogue);
  if (!gpu) return tl::unexpected<Error>(gpu.error());
  return DeviceGroup{std::move(*gpu), item->count.value_or(total.value_or(1))};
}

Expected<void> check_total(std::optional<std::int64_t> total, std::string_view where) {
  if (!total || (*total >= 1 && *total <= kMostDevices)) return {};
  return fail(ErrorCode::invalid_argument, std::string(where),
              fmt::format("{} devices in all; expected 1 to {}", *total, kMostDevices));
}

Expected<DeviceSet> agreeing(DeviceSet set, std::optional<std::int64_t> total, std::string_view text,
                             std::string_view where) {
  if (!total || set.count() == *total) return set;
  return fail(ErrorCode::invalid_argument, std::string(where),
              fmt::format("'{}' names {} devices but --gpus says {}; drop one of the two", text.substr(0, kShown),
                          set.count(), *total));
}

}  // namespace

GpuCatalogue built_in_gpus() { return {data::gpus(), data::usable_memory()}; }

Expected<Gpu> find_gpu(std::string_view name, std::string_view where, const GpuCatalogue& catalogue) {
  const std::string_view line = line_of(catalogue.gpus, name);
  if (line.empty()) return unknown_gpu(name, where, catalogue.gpus);
  const auto rules = parse_usable_rules(catalogue.usable_memory);
  if (!rules) return tl::unexpected<Error>(rules.error());
  return parse_gpu_row(line, *rules);
}

std::int64_t DeviceSet::count() const {
  std::int64_t sum = 0;
  for (const DeviceGroup& group : groups) sum += group.count;
  return sum;
}

Expected<DeviceSet> find_devices(std::string_view text, std::optional<std::int64_t> total, std::string_view where,
                                 const GpuCatalogue& catalogue) {
  if (auto checked = check_total(total, where); !checked) return tl::unexpected<Error>(checked.error());
  const bool single = text.find(',') == std::string_view::npos;
  DeviceSet set;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    auto group = find_group(rest.substr(0, comma), single ? total : std::nullopt, where, catalogue);
    if (!group) return tl::unexpected<Error>(group.error());
    set.groups.push_back(std::move(*group));
    more = comma < rest.size();
    rest.remove_prefix(more ? comma + 1 : comma);
  }
  return agreeing(std::move(set), total, text, where);
}

}  // namespace ullage::hardware
