// MODEL on the command line: where its configuration is and what it describes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/streams.h"
#include "model/architecture.h"
#include "report/messages.h"

namespace ullage::cli {

struct LoadedModel {
  model::Architecture architecture;
  std::vector<report::Message> assumptions;  // where the configuration came from, what was changed in it
  std::vector<report::Message> warnings;
};

// A catalogue name, the path of a config.json, or a folder that holds one; `fields` are --set's assignments.
// What the contract names and nothing reads yet (GGUF, ONNX, a bare size, …) is ErrorCode::unsupported.
Expected<LoadedModel> load_model(const std::string& name, const std::vector<std::string>& fields, const Files& files);

}  // namespace ullage::cli
