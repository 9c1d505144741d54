// Recorded event logs of PyTorch (tests/data/events, format in its README) and the options they were made with.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engines/pytorch/options.h"
#include "engines/transformers/options.h"

namespace ullage::testing {

struct Allocation {
  std::int64_t bytes = 0;
  std::int64_t live_bytes = 0;  // right after it
  std::string what;             // operator, type and shape, for people
  std::size_t line = 0;
};

struct PhaseLine {
  std::string name;
  std::int64_t live = 0;
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
};

struct EventLog {
  std::string model;  // JSON, or a torchvision name
  engines::pytorch::TrainOptions options;
  engines::transformers::ServeOptions serving;  // of a log of generation, instead
  std::int64_t peak = 0;
  std::int64_t peak_blocks = 0;
  std::int64_t offloaded = 0;  // bytes on the host behind the last forward pass
  std::vector<PhaseLine> phases;
  std::vector<Allocation> allocations;
};

EventLog read_event_log(const std::string& path);
// A name that GoogleTest accepts.
std::string test_name(std::string text);
// Sorted names, without the suffix, of the logs in a folder of tests/data.
std::vector<std::string> event_log_names(const std::string& folder = "events");

}  // namespace ullage::testing
