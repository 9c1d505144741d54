// From SGLang's pools to the report about them.
#pragma once

#include <cstdint>

#include "engines/serving/workload.h"
#include "engines/sglang/budget.h"
#include "hardware/gpu.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call.
struct SglangQuestion {
  const model::Architecture& architecture;
  const engines::sglang::Options& options;
  const engines::sglang::Budget& budget;
  const hardware::Gpu* gpu = nullptr;                    // none: a card without limit
  const model::Quantisation* quantisation = nullptr;     // none: plain weights
  const engines::serving::Workload* workload = nullptr;  // none was asked for
  std::int64_t used_bytes = 0;                           // of each card, by others
  bool automatic_fraction = true;                        // mem_fraction_static was not given
};

// `setup`, and the assumptions that only the caller knows, are left to it.
Prediction sglang_report(const SglangQuestion& question);

}  // namespace ullage::report
