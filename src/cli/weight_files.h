// MODEL on the command line as files that hold weights, and weights beside a configuration.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/streams.h"
#include "model/checkpoint/checkpoint.h"

namespace ullage::cli {

struct WeightFiles {
  std::string name;   // of the model
  std::string where;  // in front of errors about its configuration
  // From the metadata (GGUF) or from config.json beside the file; an error where neither tells.
  Expected<Json> config;
  model::Checkpoint checkpoint;
};

// Whether MODEL is the name of such a file: *.gguf, *.safetensors or the index of several of the latter.
bool names_weights(const std::string& name);

// The file; all parts of a set where it is one of them.
Expected<WeightFiles> read_weights(const std::string& path, const Files& files);

// What model.safetensors.index.json or model.safetensors in `folder` stores; nothing where there is neither.
Expected<std::optional<model::Checkpoint>> weights_in(const std::string& folder, const Files& files);

}  // namespace ullage::cli
