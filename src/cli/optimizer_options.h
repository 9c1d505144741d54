// The options of `ullage train` about the optimizer.
#pragma once

#include "cli/arguments.h"
#include "engines/pytorch/options.h"

namespace ullage::cli {

// Fails on an implementation that the optimizer does not have, and on what contradicts stepping in backward.
Expected<void> read_optimizer(const Arguments& arguments, engines::pytorch::TrainOptions& options);

std::string_view name_of(engines::pytorch::OptimizerImpl impl);

}  // namespace ullage::cli
