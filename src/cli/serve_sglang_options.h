// The options of `ullage serve --engine sglang`.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "engines/sglang/budget.h"
#include "engines/sglang/options.h"
#include "report/prediction.h"

namespace ullage::cli {

// Flags as given.
Expected<engines::sglang::Flags> sglang_flags(const Arguments& arguments);

// Every option as resolved; `budget` says how many requests may run.
std::vector<report::Setting> sglang_settings(const Arguments& arguments, const engines::sglang::Options& options,
                                             const engines::sglang::Budget& budget, std::int64_t gpus);

// Which of them are the release's defaults, where there are any.
std::vector<report::Message> sglang_defaults(const Arguments& arguments, const engines::sglang::Options& options);

}  // namespace ullage::cli
