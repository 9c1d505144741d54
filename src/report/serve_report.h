// From a simulated generation to the report about it.
#pragma once

#include "engines/transformers/serve.h"
#include "hardware/gpu.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call.
struct ServeQuestion {
  const model::Architecture& architecture;
  const engines::transformers::ServeOptions& options;
  const engines::transformers::ServeRun& served;
  const hardware::Gpu* gpu = nullptr;  // none: a card without limit
  memory::AllocatorSettings allocator{};
  std::int64_t used_bytes = 0;  // of the card, by others
};

// `setup`, and the assumptions that only the caller knows, are left to it.
Prediction serve_report(const ServeQuestion& question);

}  // namespace ullage::report
