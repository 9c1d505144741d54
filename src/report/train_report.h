// From a simulated training step to the report about it.
#pragma once

#include "engines/pytorch/train.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "report/loading.h"
#include "report/prediction.h"

namespace ullage::report {

// All must outlive the call. `run` is what run_train_step made of the first two
// (with fewer micro-batches where some are left to `further_micro_batches`).
struct TrainQuestion {
  const model::Architecture& architecture;
  const engines::pytorch::TrainOptions& options;
  const engines::pytorch::TrainRun& run;
  const hardware::Gpu* gpu = nullptr;  // none: a card without limit
  // Micro-batches of the step behind those in `run`, each equal to the last of them.
  std::int64_t further_micro_batches = 0;
  const engines::pytorch::TrainRun* first = nullptr;  // the run's first step, where `run` is a later one
  memory::AllocatorSettings allocator{};
  std::int64_t used_bytes = 0;             // of the card, by others; the card's usable bytes are without them
  std::int64_t nearby_reserved_bytes = 0;  // what a neighbouring size reserves (reserve_nearby.h); 0: not asked
  std::optional<Load> load{};              // how the weights arrive, where that is asked for
};

// Who allocated last before `event`; nobody if that was before the step.
Moment moment_of(const engines::pytorch::TrainRun& run, std::uint32_t event);

// `setup`, and the assumptions that only the caller knows (defaults, where the model came from), are left to it.
Prediction train_report(const TrainQuestion& question);

}  // namespace ullage::report
