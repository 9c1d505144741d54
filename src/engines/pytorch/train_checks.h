// What a step can be asked of a model, before it is run.
#pragma once

#include "engines/pytorch/options.h"
#include "model/architecture.h"

namespace ullage::engines::pytorch {

// Sequences longer than learned positions, images that do not fit, and the like; and all that is too large to count.
Expected<void> check_step(const model::Architecture& architecture, const TrainOptions& options);
// Adapters are parameters that the bounds on sizes have not seen.
Expected<void> check_adapted(const model::Architecture& architecture, const model::TuningPlan& plan,
                             const TrainOptions& options);

}  // namespace ullage::engines::pytorch
