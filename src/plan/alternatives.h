// What else could be run where a training step does not fit: candidates, each as the options that make it.
//
// Nothing here is estimated. Whoever asks runs each candidate and compares; one that cannot be run with the rest of the
// set-up is no candidate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/pytorch/options.h"
#include "model/architecture.h"

namespace ullage::plan {

// What the user gives up, mildest first.
enum class Cost : std::uint8_t {
  time,      // the same training, perhaps slower
  numbers,   // other roundings, or fewer bits for what the optimizer keeps
  training,  // other parameters are trained
};

enum class Change : std::uint8_t {
  fused_attention,
  expandable_segments,
  fused_optimizer,
  optimizer_in_backward,
  fused_loss,
  recompute,
  half_micro_batch,
  micro_batch_of_one,
  paged_8bit_optimizer,
  weights_in_bf16,
  lora,
  qlora,
};

struct Alternative {
  Change change = Change::recompute;
  Cost cost = Cost::time;
  std::vector<std::string> args;  // options that replace those of the same name
};

// Candidates for the set-up, mildest first and in the order in which they are worth trying.
std::vector<Alternative> alternatives(const model::Architecture& architecture,
                                      const engines::pytorch::TrainOptions& options);

}  // namespace ullage::plan
