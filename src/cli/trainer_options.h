// What `--trainer` decides about the other options of `ullage train`.
#pragma once

#include "cli/arguments.h"
#include "engines/pytorch/options.h"
#include "model/architecture.h"

namespace ullage::cli {

// Fails on what the Trainer does not do by itself.
Expected<void> check_trainer(const Arguments& arguments, const model::Architecture& architecture);

// What the Trainer takes where nothing is said (TrainingArguments): autocast in the type of the weights, a scaler for
// fp16, gradients clipped to a norm of 1, of recent releases the fused AdamW. To be called when the rest has been read.
void apply_trainer(const Arguments& arguments, engines::pytorch::TrainOptions& options);

}  // namespace ullage::cli
