// The options of `ullage serve --engine vllm`.
#pragma once

#include <optional>
#include <vector>

#include "cli/arguments.h"
#include "cli/device_options.h"
#include "cli/model_source.h"
#include "engines/vllm/cache_plan.h"
#include "engines/vllm/options.h"
#include "model/quantisation.h"
#include "report/prediction.h"

namespace ullage::cli {

// Flags as given; `max` for --max-model-len is left to the caller.
Expected<engines::vllm::Flags> vllm_flags(const Arguments& arguments);

// --input-len, --output-len and --concurrency; nothing where no length is given.
Expected<std::optional<engines::vllm::Workload>> vllm_workload(const Arguments& arguments,
                                                               const engines::vllm::Options& options);

// How the weights are kept: as --quantization says of a plain checkpoint, else as the checkpoint says of itself.
// Nothing: all in the model's type.
Expected<std::optional<model::Quantisation>> vllm_quantisation(const Arguments& arguments, const LoadedModel& loaded,
                                                               const engines::vllm::Options& options);

// Every option as resolved.
std::vector<report::Setting> vllm_settings(const Arguments& arguments, const engines::vllm::Options& options,
                                           std::int64_t gpus);

// Which of them are the release's defaults, where there are any.
std::vector<report::Message> vllm_defaults(const Arguments& arguments, const engines::vllm::Options& options);

}  // namespace ullage::cli
