// From an engine's account of a card to the report about it.
#pragma once

#include "engines/budget/account.h"
#include "engines/vllm/cache_plan.h"
#include "hardware/gpu.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call.
struct BudgetQuestion {
  const model::Architecture& architecture;
  const engines::budget::Options& options;
  const engines::budget::Account& account;
  const hardware::Gpu* gpu = nullptr;                 // none: a card without limit
  const model::Quantisation* quantisation = nullptr;  // none: plain weights
  const engines::vllm::Workload* workload = nullptr;  // none was asked for
};

// `setup`, and the assumptions that only the caller knows, are left to it.
Prediction budget_report(const BudgetQuestion& question);

}  // namespace ullage::report
