// From vLLM's budget to the report about it.
#pragma once

#include <cstdint>

#include "engines/vllm/budget.h"
#include "hardware/gpu.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call.
struct VllmQuestion {
  const model::Architecture& architecture;
  const engines::vllm::Options& options;
  const engines::vllm::Budget& budget;
  const hardware::Gpu* gpu = nullptr;                 // none: a card without limit
  const model::Quantisation* quantisation = nullptr;  // none: plain weights
  const engines::vllm::Workload* workload = nullptr;  // none was asked for
  std::int64_t used_bytes = 0;                        // of each card, by others; the card's usable bytes are with them
};

// `setup`, and the assumptions that only the caller knows, are left to it.
Prediction vllm_report(const VllmQuestion& question);

}  // namespace ullage::report
