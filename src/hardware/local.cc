#include "hardware/local.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::hardware {
namespace {

Gpu unknown_card(const LocalDevice& device) {
  Gpu out;
  out.id = device.name;
  out.vendor = "NVIDIA";
  out.name = device.name;
  out.compute_capability = device.compute_capability;
  out.datasheet_bytes = device.total_bytes;
  return out;
}

}  // namespace

Expected<Gpu> describe(const LocalDevice& device, const GpuCatalogue& catalogue) {
  auto found = find_gpu(device.name, "--gpu", catalogue);
  if (!found && found.error().code != ErrorCode::not_found) return found;
  Gpu out = found ? std::move(*found) : unknown_card(device);
  out.memory_bytes = device.total_bytes;
  out.nvidia_smi_total_bytes = device.total_bytes;
  if (device.power_limit_w) out.tdp_w = device.power_limit_w;
  // What the driver keeps for itself no program can have. An old driver does not tell it: then the catalogue's figure
  // stands, unless the card shows less than that (another variant under the same name, a slice).
  const std::int64_t shown = device.total_bytes - device.reserved_bytes;
  if (device.reserved_bytes > 0 || out.usable_bytes == 0 || shown < out.usable_bytes) {
    set_usable(out, shown);
    out.usable_basis = UsableBasis::driver;
    out.usable_source = fmt::format("NVML, driver {}", device.driver);
  }
  return out;
}

}  // namespace ullage::hardware
