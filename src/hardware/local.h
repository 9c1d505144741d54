// The cards of this machine as their driver shows them (`--gpu local`).
//
// NVML is loaded at run time, and only when asked for: the program neither links to it nor needs it. Functions and the
// layouts they fill: NVIDIA's NVML API Reference Guide (nvmlDeviceGetMemoryInfo_v2 since driver 510, the form without
// `reserved` before).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "hardware/catalogue.h"

namespace ullage::hardware {

struct LocalDevice {
  int index = 0;     // as nvidia-smi counts
  std::string name;  // "NVIDIA GeForce RTX 4090"
  std::string driver;
  std::optional<ComputeCapability> compute_capability;
  std::int64_t total_bytes = 0;     // nvidia-smi's total
  std::int64_t reserved_bytes = 0;  // of it, by the driver for itself; 0 where an old driver counts it as used
  std::int64_t used_bytes = 0;      // by all processes
  std::optional<int> power_limit_w;
};

// In the driver's order. not_found where there is no driver or no card, unsupported where the library answers with an
// error, each saying what to do.
Expected<std::vector<LocalDevice>> local_devices();

// The row of the catalogue for the card, with the memory that this machine shows; a card that the catalogue does not
// know is described by what the driver says of it.
Expected<Gpu> describe(const LocalDevice& device, const GpuCatalogue& catalogue = built_in_gpus());

}  // namespace ullage::hardware
