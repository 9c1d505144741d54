// How far reserved memory depends on what a set-up leaves open.
//
// Whether a large tensor finds a hole or asks for a segment of its own depends on sizes down to the byte: one token
// more or less to a sequence (a special token, labels that are shifted, padding to a multiple) can add or spare a
// segment as large as the logits. So the step is run again with sequences a token shorter and a token longer, or with a
// sample less and a sample more where there are no tokens, each from its first step on.
#pragma once

#include <cstdint>

#include "engines/pytorch/options.h"
#include "memory/caching_allocator.h"
#include "model/architecture.h"
#include "tensor/workspace.h"

namespace ullage::engines::pytorch {

// All must outlive the call.
struct NearbyQuestion {
  const model::Architecture& architecture;
  const TrainOptions& options;       // of the step in the middle
  std::int64_t workspace_bytes = 0;  // cuBLAS's (workspaces.h); 0: none are added
  memory::AllocatorSettings settings;
  tensor::Workspace* room = nullptr;  // lends memory to the simulations
};

// The most that one of its neighbours reserves on a card without limit, bytes; 0 where none can be run. The sequence
// that is too long for the model is no neighbour. Cost: four simulated steps and their replays.
std::int64_t most_reserved_nearby(const NearbyQuestion& question);

}  // namespace ullage::engines::pytorch
