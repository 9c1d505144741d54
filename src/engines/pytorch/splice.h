// Equal layers need not be simulated one by one: what the second-to-middle one does to the timeline, the next one does
// with every reference moved on by the same amount. Where kinds of layers alternate, the same holds of their periods.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engines/pytorch/train.h"
#include "tensor/context.h"

namespace ullage::engines::pytorch {

struct Moments {
  std::uint32_t before_step = 0;
  std::uint32_t after_forward = 0;
  std::uint32_t after_backward = 0;
  std::uint32_t after_step = 0;
};

struct RecordedStep {
  Moments moments;
  std::vector<tensor::Context::Section> sections;
  memory::Timeline timeline;
  // A block with one element for each parameter, and so of a size that follows the number of layers; kNone: there is
  // none.
  memory::BlockId stacked_norms = memory::kNone;
  std::int64_t norm_bytes = 0;  // of one such element
};

// The step as it was recorded, all layers simulated.
TrainRun whole(RecordedStep step);

// Simulates `architecture` with a handful of layers and repeats the middle of each stretch of layers until all are
// there. Returns nothing when that is not possible (too few layers, kinds that do not repeat) or when neighbouring
// layers turn out not to be alike; the caller then runs in full.
std::optional<TrainRun> run_spliced(const model::Architecture& architecture, const model::TuningPlan& plan,
                                    const std::function<RecordedStep(const model::Architecture&)>& run,
                                    tensor::Workspace& workspace);

}  // namespace ullage::engines::pytorch
