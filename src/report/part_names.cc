#include "report/part_names.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::report {
namespace {

using memory::Component;

// These carry a name of their own; other blocks are named after the operator that made them.
bool has_own_name(Component component) {
  return component == Component::parameters || component == Component::optimizer || component == Component::buffers ||
         component == Component::inputs || component == Component::kv_cache;
}

}  // namespace

std::string name_of(const memory::Part& part, const NameTable& names) {
  std::string name(names[part.name]);
  if (has_own_name(part.component) || part.module == 0) return name;
  return std::string(names[part.module]) + " " + name;
}

std::vector<Group> over_layers(std::span<const PartLine> parts) {
  std::map<std::pair<Component, std::string>, Group> groups;
  for (const PartLine& part : parts) {
    Group& group = groups[{part.component, part.name}];
    group.component = part.component;
    group.name = part.name;
    group.bytes += part.bytes;
    group.blocks += part.blocks;
    group.layers += part.layer ? 1 : 0;
  }
  std::vector<Group> out;
  out.reserve(groups.size());
  for (auto& entry : groups) out.push_back(std::move(entry.second));
  std::stable_sort(out.begin(), out.end(), [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace ullage::report
