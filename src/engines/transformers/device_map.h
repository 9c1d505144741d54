// Which card holds which module: device_map="auto" and its kin, as transformers 5.12 works them out from the sizes of
// weights and buffers (integrations/accelerate.py: compute_module_sizes, get_balanced_memory, infer_auto_device_map;
// accelerate/utils/modeling.py: get_max_layer_size, get_module_size_with_ties, clean_device_map).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engines/transformers/options.h"
#include "model/architecture.h"
#include "model/tuning.h"

namespace ullage::engines::transformers {

// automatic is the same as balanced.
enum class DeviceMap : std::uint8_t { balanced, balanced_low_0, sequential };

// What stands for the processor where a device's number is meant: modules that no card has room for.
inline constexpr std::int32_t kProcessor = -1;

struct Placement {
  std::vector<std::int32_t> parameters;  // outside of layers, by index
  std::vector<std::int32_t> layers;
  std::vector<std::int32_t> buffers;                          // outside of layers, by index
  std::vector<std::pair<std::string, std::int32_t>> modules;  // the map as the library prints it, in its order
  std::vector<std::int64_t> bytes;                            // that the library counted, by card
  std::int64_t largest_bytes = 0;                             // of what is not split, as it counted
  // The card that inputs are put on and tokens come from.
  std::int32_t main() const;
  std::int32_t of_rotary(const model::Architecture& architecture) const;
  // How many modules of the map are left to the processor.
  std::int64_t left_to_processor() const;
};

// `free_bytes`: what the driver shows as free on each card before anything is loaded, its context made. Layers are
// never split. The processor has room for whatever is left over.
Placement place(const model::Architecture& architecture, const model::TuningPlan& plan, const ServeOptions& options,
                DeviceMap map, std::span<const std::int64_t> free_bytes);

// bitsandbytes' quantizers leave a tenth of what they are given (adjust_max_memory).
bool leaves_a_tenth(model::BaseFormat format);

// What a parameter takes on its card, with the tables of a quantised one, without an allocator's rounding.
std::int64_t resident_bytes(const model::Parameter& parameter, const model::ParameterRole& role, model::BaseFormat base,
                            DType dtype);

}  // namespace ullage::engines::transformers
