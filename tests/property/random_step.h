// Small models and options at random, the same for a seed on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/pytorch/train.h"
#include "model/architecture.h"

namespace ullage::testing {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators): no library's distributions, which
// differ between standard libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T>
  T any_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::uint64_t next();

  std::uint64_t state_;
};

struct RandomStep {
  std::uint64_t seed = 0;
  std::string config;  // JSON
  model::Architecture architecture;
  engines::pytorch::TrainOptions options;

  std::string text() const;  // for messages
};

// llama, mistral, gpt2 or a GPT-style decoder with 1 to `most_layers` layers, every option drawn.
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
