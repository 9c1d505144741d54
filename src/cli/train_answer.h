// One training step, from arguments to what is known about it.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "cli/model_source.h"
#include "cli/streams.h"
#include "cli/train_options.h"
#include "engines/pytorch/train.h"
#include "report/prediction.h"

namespace ullage::cli {

struct TrainAnswer {
  report::Prediction prediction;
  LoadedModel model;
  engines::pytorch::TrainOptions options;
  memory::AllocatorSettings allocator;
  engines::pytorch::TrainRun run;
  std::optional<engines::pytorch::TrainRun> first;  // the run's first step, where `run` is a later one
};

Expected<TrainAnswer> answer_training(const Arguments& arguments, const Files& files);

}  // namespace ullage::cli
