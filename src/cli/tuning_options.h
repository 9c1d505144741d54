// The options of `ullage train` about what is trained: adapters, copies of modules, frozen parts.
#pragma once

#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "engines/pytorch/options.h"
#include "report/prediction.h"

namespace ullage::cli {

// Fails on contradictions; names of modules are checked against the model by whoever runs the step.
Expected<void> read_tuning(const Arguments& arguments, engines::pytorch::TrainOptions& options);

// The options as resolved.
std::vector<report::Setting> tuning_settings(const Arguments& arguments, const engines::pytorch::TrainOptions& options,
                                             const model::Architecture& architecture);

// Which of them were left to us, and their values.
std::vector<std::pair<std::string_view, std::string>> tuning_defaults(const engines::pytorch::TrainOptions& options,
                                                                      const model::Architecture& architecture);

}  // namespace ullage::cli
