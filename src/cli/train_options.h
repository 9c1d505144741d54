// The options of `ullage train` as the engine takes them.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "engines/pytorch/options.h"
#include "model/architecture.h"
#include "report/loading.h"
#include "report/prediction.h"

namespace ullage::cli {

struct TrainSetup {
  engines::pytorch::TrainOptions options;
  std::vector<report::Setting> settings;     // every option as resolved
  std::vector<report::Message> assumptions;  // which of them are defaults
  std::vector<report::Message> warnings;
  memory::AllocatorSettings allocator{};
  std::optional<report::Load> load;
};

// Fails on contradictions, on versions that are not known and on sizes beyond what can be counted.
// Whether the flash-attn package's function is modelled for the family.
Expected<void> check_flash_of(const model::Architecture& architecture);

Expected<TrainSetup> resolve_train_options(const Arguments& arguments, const model::Architecture& architecture);

// --seq-len of a text model, or its default: the smaller of 2048 and the model's limit.
Expected<std::int64_t> sequence_length(const Arguments& arguments, const model::Architecture& architecture);
// --image-size of an image model, or the model's.
Expected<std::int64_t> image_size(const Arguments& arguments, const model::Architecture& architecture);

}  // namespace ullage::cli
