// The options of `ullage serve` as the transformers engine takes them.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "engines/transformers/options.h"
#include "model/architecture.h"
#include "report/prediction.h"

namespace ullage::cli {

struct ServeSetup {
  engines::transformers::ServeOptions options;
  std::vector<report::Setting> settings;     // every option as resolved
  std::vector<report::Message> assumptions;  // which of them are defaults
  std::vector<report::Message> warnings;
  memory::AllocatorSettings allocator{};
};

// Fails on versions that are not known and on sizes beyond what can be counted.
Expected<ServeSetup> resolve_serve_options(const Arguments& arguments, const model::Architecture& architecture);

}  // namespace ullage::cli
