// The options of `ullage serve --engine vllm`.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/serve_checks.h"
#include "engines/vllm/options.h"
#include "report/prediction.h"

namespace ullage::cli {

// Flags as given; `max` for --max-model-len is left to the caller.
Expected<engines::vllm::Flags> vllm_flags(const Arguments& arguments);

// What this release makes of the scales of bitsandbytes.
ScalesOfNf4 vllm_scales(const engines::vllm::Options& options);

// Every option as resolved.
std::vector<report::Setting> vllm_settings(const Arguments& arguments, const engines::vllm::Options& options,
                                           std::int64_t gpus);

// Which of them are the release's defaults, where there are any.
std::vector<report::Message> vllm_defaults(const Arguments& arguments, const engines::vllm::Options& options);

}  // namespace ullage::cli
