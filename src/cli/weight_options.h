// --quantization: how weights are stored.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "cli/model_source.h"
#include "report/weight_facts.h"

namespace ullage::cli {

// As --quantization says, or the model's own quantization_config where it says nothing and that is modelled; nothing:
// neither is there.
Expected<std::optional<report::WeightFacts>> weights_as_stored(const Arguments& arguments, const LoadedModel& loaded,
                                                               DType dtype);

}  // namespace ullage::cli
