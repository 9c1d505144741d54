// From a generation over several cards to the report about it.
#pragma once

#include <span>

#include "engines/transformers/device_map.h"
#include "engines/transformers/serve.h"
#include "hardware/gpu.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call. `served`: what each card sees.
struct CardsQuestion {
  const model::Architecture& architecture;
  const engines::transformers::ServeOptions& options;
  std::span<const engines::transformers::ServeRun> served;
  std::span<const hardware::Gpu> gpus;  // by number; none: cards without limit
  const engines::transformers::Placement& placement;
  memory::AllocatorSettings allocator{};
  std::int64_t used_bytes = 0;  // of each card, by others
};

// The card that has least left speaks for all; `ranks` has every one.
Prediction serve_report(const CardsQuestion& question);

}  // namespace ullage::report
