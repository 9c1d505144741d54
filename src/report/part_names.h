// How a group of blocks is called, and sums over groups that differ in their layer only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "memory/attribution.h"
#include "report/prediction.h"

namespace ullage::report {

// A tensor's own name, or the module and the operator that made it: "mlp.down_proj mm".
std::string name_of(const memory::Part& part, const NameTable& names);

// The same with the layer's number left out; bytes, blocks and layers are summed. Largest first.
struct Group {
  memory::Component component = memory::Component::unattributed;
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t layers = 0;  // how many layers have such blocks; 0: outside of layers
};
std::vector<Group> over_layers(std::span<const PartLine> parts);

}  // namespace ullage::report
