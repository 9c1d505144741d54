// Small models and options at random, the same for a seed on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dice.h"
#include "engines/pytorch/train.h"
#include "model/architecture.h"

namespace ullage::testing {

struct RandomStep {
  std::uint64_t seed = 0;
  std::string config;  // JSON
  model::Architecture architecture;
  engines::pytorch::TrainOptions options;

  std::string text() const;  // for messages
};

// gpt2, a GPT-style decoder or one in the manner of Llama with 1 to `most_layers` layers, every option drawn.
RandomStep random_step(std::uint64_t seed, std::int64_t most_layers);

// The same with a full run's errors asserted away: a random step always runs.
engines::pytorch::TrainRun run(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options,
                               bool splice = true);
inline engines::pytorch::TrainRun run(const RandomStep& setup, bool splice = true) {
  return run(setup.architecture, setup.options, splice);
}

// The highest moment of the step.
memory::Moment peak_of(const engines::pytorch::TrainRun& run);

}  // namespace ullage::testing
