// The answer for a launch command: what was read, the prediction, and commands that start where it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/launch.h"
#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

// Another command, which was run through the prediction.
struct Correction {
  std::vector<std::pair<std::string, std::string>> changes;  // the engine's flags, a switch without a value
  std::string command;
  std::int64_t gpus = 1;   // in all
  bool more_gpus = false;  // than the command was given
  Prediction prediction;
};

struct CheckReport {
  launch::Launch launch;
  std::vector<std::string> question;     // the words of `ullage serve` that ask the same
  std::string taken_model;               // of the catalogue, for a folder that is not here; empty: as the command says
  std::optional<Prediction> prediction;  // none: the engine is not answered in this version
  std::string spelled;                   // the command with flags the engine has; empty: it has them all
  bool searched = false;                 // it does not start: corrections were tried
  std::vector<Correction> corrections;   // that start, the mildest first
};

std::string check_text(const CheckReport& report, const TextStyle& style);

// ullage.check/1.
std::string check_json(const CheckReport& report);

}  // namespace ullage::report
