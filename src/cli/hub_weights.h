// What the weights of a model on the Hub are: the headers of its safetensors files, fetched together.
#pragma once

#include <optional>

#include "hub/repository.h"
#include "model/checkpoint/checkpoint.h"

namespace ullage::cli {

// Nothing where the repository has neither model.safetensors.index.json nor model.safetensors.
Expected<std::optional<model::Checkpoint>> weights_on_hub(hub::Repository& repository);

}  // namespace ullage::cli
