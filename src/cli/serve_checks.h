// What engines that share a card out have in common on the command line.
#pragma once

#include <optional>
#include <string_view>

#include "cli/arguments.h"
#include "cli/device_options.h"
#include "cli/model_source.h"
#include "engines/serving/workload.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/quantisation.h"

namespace ullage::cli {

inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

// "8192", "32k", "32K"; nothing where the option is not there.
Expected<std::optional<std::int64_t>> suffixed_count(const Arguments& arguments, std::string_view option,
                                                     std::int64_t low, std::int64_t high);

// Whether it is a decoder of text, alone or behind a tower. `engine` is the product's name.
Expected<void> check_generates(const model::Architecture& architecture, std::string_view engine);

// Whether the engine's kernels, which begin at `least`, run on the card.
Expected<void> check_card(const hardware::Gpu* card, std::string_view engine, hardware::ComputeCapability least);

// GPUs that are there, of which `needed` are used.
Expected<std::int64_t> gpu_count(const ChosenDevice& device, std::int64_t needed);

// --input-len, --output-len and --concurrency; nothing where no length is given. `longest` is the longest request,
// which `option` sets.
Expected<std::optional<engines::serving::Workload>> serving_workload(const Arguments& arguments, std::int64_t longest,
                                                                     std::string_view option);

// What becomes of bitsandbytes' scales, which are quantised themselves.
enum class ScalesOfNf4 : std::uint8_t { as_stored, taken_apart };

// How the weights are kept: as --quantization says of a plain checkpoint, else as the checkpoint says of itself.
// Nothing: all in the model's type. Words are those of `engine`, the product's name.
Expected<std::optional<model::Quantisation>> serving_quantisation(const Arguments& arguments, const LoadedModel& loaded,
                                                                  ScalesOfNf4 scales, std::string_view engine);

}  // namespace ullage::cli
