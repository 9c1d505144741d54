// What engines that share a card out have in common on the command line.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/device_options.h"
#include "cli/model_source.h"
#include "engines/serving/version.h"
#include "engines/serving/workload.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/quantisation.h"
#include "report/prediction.h"

namespace ullage::cli {

inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

// "8192", "32k", "32K"; nothing where the option is not there.
Expected<std::optional<std::int64_t>> suffixed_count(const Arguments& arguments, std::string_view option,
                                                     std::int64_t low, std::int64_t high);

// Whether it is a decoder of text, alone or behind a tower. `engine` is the product's name.
Expected<void> check_generates(const model::Architecture& architecture, std::string_view engine);

// Whether the engine's kernels, which begin at `least`, run on the card.
Expected<void> check_card(const hardware::Gpu* card, std::string_view engine, hardware::ComputeCapability least);

// A model, the cards that are to hold it, and what both are told by.
struct Served {
  LoadedModel loaded;
  ChosenDevice device;
  const hardware::Gpu* card() const { return device.gpu ? &*device.gpu : nullptr; }
};

// The model and the equal cards that the arguments name. `runs_on(card)` says whether the engine runs on such a card;
// nullptr: nobody named one.
Expected<Served> load_served(const Arguments& arguments, const Files& files, std::string_view engine,
                             const std::function<Expected<void>(const hardware::Gpu*)>& runs_on);

// The text behind an option, where it is given.
std::optional<std::string> given_text(const Arguments& arguments, std::string_view option);

// Of options and the values that they have, those that nobody gave, as an assumption; nothing where all were given.
std::vector<report::Message> defaults_told(const Arguments& arguments,
                                           std::span<const std::pair<std::string_view, std::string>> values);

// Brings what the model and the cards assume between `resolved` and what the report has of the engine already, and
// the warnings of both behind its own. `unused` of `gpus` do nothing, which `key` says.
void tell_served(report::Prediction& out, std::vector<report::Message> resolved, const Served& served,
                 std::int64_t unused, std::int64_t gpus, report::Text key = report::Text::warn_gpus_unused);

// That a release is newer (older) than the rules, which end (begin) at `known`.
report::Message newer_than_rules(std::string_view engine, engines::serving::Version version,
                                 engines::serving::Version known);
report::Message older_than_rules(std::string_view engine, engines::serving::Version version,
                                 engines::serving::Version known);

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
