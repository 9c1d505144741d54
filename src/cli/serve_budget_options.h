// The options of `ullage serve --engine tensorrt-llm|mindie|lmdeploy|tgi`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/model_source.h"
#include "engines/budget/options.h"
#include "engines/vllm/cache_plan.h"
#include "hardware/gpu.h"
#include "model/quantisation.h"
#include "report/prediction.h"

namespace ullage::cli {

// As resolved for a release, a model and a card.
Expected<engines::budget::Options> budget_options(const Arguments& arguments, const LoadedModel& loaded,
                                                  const hardware::Gpu* card);

// How the weights are kept; nothing: all in the model's type.
Expected<std::optional<model::Quantisation>> budget_quantisation(const Arguments& arguments, const LoadedModel& loaded);

// --input-len, --output-len and --concurrency; nothing where no length is given.
Expected<std::optional<engines::vllm::Workload>> budget_workload(const Arguments& arguments,
                                                                 const engines::budget::Options& options);

// Every option as resolved, under the engine's own names.
std::vector<report::Setting> budget_settings(const Arguments& arguments, const engines::budget::Options& options,
                                             std::int64_t gpus);
std::vector<report::Message> budget_defaults(const Arguments& arguments, const engines::budget::Options& options);

}  // namespace ullage::cli
