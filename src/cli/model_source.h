// MODEL on the command line: where its configuration is and what it describes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/streams.h"
#include "model/architecture.h"
#include "model/checkpoint/checkpoint.h"
#include "report/messages.h"

namespace ullage::cli {

struct LoadedModel {
  model::Architecture architecture;
  Json quantisation;  // quantization_config, of the whole or of its text model; null: there is none
  std::vector<report::Message> assumptions;  // where the configuration came from, what was changed in it
  std::vector<report::Message> warnings;
  std::optional<double> size;               // in parameters, where a bare size was asked for
  Json config;                              // that it was built from, --set's assignments included
  std::optional<model::Checkpoint> stored;  // the file named, or the weights beside the configuration
  std::optional<Error> weights_problem;     // why the latter were not read, which a warning says too
};

enum class Extent : std::uint8_t {
  runnable,  // what has a forward pass
  outline,   // weights and what layers keep are enough
};

// A catalogue name, the path of a config.json, a folder that holds one, a file of weights (weight_files.h), or a model
// of the Hub that is in no catalogue; `fields` are --set's assignments.
// A bare size such as "7B" is answered by the catalogue's model that stands for it, with a warning that says so.
// With Extent::outline the whole of a model is given where no more than its outline is known, too.
// What the contract names and nothing reads yet (ONNX, …) is ErrorCode::unsupported.
Expected<LoadedModel> load_model(const std::string& name, const std::vector<std::string>& fields, const Files& files,
                                 Extent extent = Extent::runnable);

// Whether `name` is neither a file nor in the catalogue but could be a model of the Hub.
bool is_of_hub(const std::string& name, const Files& files);

}  // namespace ullage::cli
