// Throughput that published training runs reached, from data/training_runs.jsonl.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage::speed {

struct TrainingRun {
  std::string name;
  std::string gpu;  // the catalogue's id
  double tokens_per_second_per_gpu = 0;
  std::string source;
};

// By name, ignoring case; unknown: not_found with all names. `where` stands in front of the error.
Expected<TrainingRun> find_training_run(std::string_view name, std::string_view where);

}  // namespace ullage::speed
