// One training step, from arguments to what is known about it.
#pragma once

#include <cstdint>
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

// How far reserved memory may be off costs half of the rest; who only compares sizes does without.
enum class Ranges : std::uint8_t { none, nearby };

Expected<TrainAnswer> answer_training(const Arguments& arguments, const Files& files, Ranges ranges);

}  // namespace ullage::cli
