// What to run instead of a training step: alternatives that were really run.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/train_search.h"
#include "engines/pytorch/options.h"
#include "model/architecture.h"
#include "report/prediction.h"

namespace ullage::cli {

struct AdviceQuestion {
  const Arguments& arguments;
  const report::Prediction& base;  // what they give
  const model::Architecture& architecture;
  const engines::pytorch::TrainOptions& options;
};

// Alternatives that need less than the base, mildest first; where none of them is enough alone, also as many together
// as it takes, and where the base does not fit, the next larger cards.
std::vector<report::AdviceLine> advise(const AdviceQuestion& question, const PredictStep& predict);

}  // namespace ullage::cli
