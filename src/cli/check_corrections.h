// Other commands than one that does not start, found by trying.
#pragma once

#include <functional>
#include <vector>

#include "cli/arguments.h"
#include "cli/streams.h"
#include "launch/launch.h"
#include "report/check.h"

namespace ullage::cli {

// All must outlive the call.
struct CorrectionQuestion {
  const launch::Launch& launch;
  const Arguments& arguments;      // of `ullage serve`, of the same question
  const report::Prediction& base;  // which does not fit
  const Files& files;
};

// Commands that were predicted to start, the mildest change first: one flag each, or, where none is enough, as many as
// it takes. Empty: nothing that was tried starts.
std::vector<report::Correction> find_corrections(const CorrectionQuestion& question);

}  // namespace ullage::cli
