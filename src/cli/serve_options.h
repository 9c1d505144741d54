// The options of `ullage serve` as the transformers engine takes them.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/model_source.h"
#include "engines/transformers/device_map.h"
#include "report/prediction.h"

namespace ullage::cli {

struct ServeSetup {
  engines::transformers::ServeOptions options;
  engines::transformers::DeviceMap device_map = engines::transformers::DeviceMap::balanced;
  std::vector<report::Setting> settings;     // every option as resolved
  std::vector<report::Message> assumptions;  // which of them are defaults
  std::vector<report::Message> warnings;
  memory::AllocatorSettings allocator{};
};

// What the model's quantization_config says of its weights; plain where there is none. Fails with
// ErrorCode::unsupported where it is no format that is modelled.
Expected<model::BaseFormat> own_format(const LoadedModel& loaded);

// As --quantization has it.
std::string_view name_of(model::BaseFormat format);

// Fails on formats of weights that it does not know, on versions that are not known and on sizes beyond what can be
// counted.
Expected<ServeSetup> resolve_serve_options(const Arguments& arguments, const LoadedModel& loaded);

}  // namespace ullage::cli
