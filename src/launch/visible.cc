#include "launch/visible.h"

#include <algorithm>
#include <charconv>

namespace ullage::launch {
namespace {

constexpr std::string_view kNames[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                       "NVIDIA_VISIBLE_DEVICES"};

// "0,1", "GPU-8f…,GPU-1a…"; "all" limits nothing.
std::optional<std::int64_t> listed(std::string_view list) {
  if (list.empty() || list == "all" || list == "none" || list == "void" || list.front() == '-') return std::nullopt;
  if (list.find('$') != std::string_view::npos) return std::nullopt;
  std::int64_t count = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) ++count;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

std::optional<Visible> visible_gpus(const Variables& environment) {
  for (const std::string_view name : kNames) {
    const std::string* value = find_variable(environment, name);
    if (value == nullptr) continue;
    if (const auto count = listed(*value)) return Visible{*count, std::string(name)};
  }
  return std::nullopt;
}

std::optional<std::int64_t> container_gpus(std::string_view value) {
  while (!value.empty() && (value.front() == '"' || value.front() == '\'')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '"' || value.back() == '\'')) value.remove_suffix(1);
  constexpr std::string_view kDevice = "device=";
  if (value.starts_with(kDevice)) return listed(value.substr(kDevice.size()));
  std::int64_t count = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (fault != std::errc{} || end != value.data() + value.size() || count < 1) return std::nullopt;
  return count;
}

bool says_visible(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace ullage::launch
