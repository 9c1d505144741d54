// How far reserved memory depends on what a set-up leaves open.
//
// Whether a large tensor finds a hole or asks for a segment of its own depends on sizes down to the byte: one token
// less to a sequence (labels that a loop shifts itself, a special token that is not there) can add or spare a segment
// as large as the logits, the more so as lengths are powers of two. So the step is run again with sequences a token
// shorter, or with a sample less where there are no tokens, from its first step on.
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

// What that neighbour reserves on a card without limit, bytes; 0 where it cannot be run. Cost: two simulated steps and
// their replays.
std::int64_t reserved_nearby(const NearbyQuestion& question);

}  // namespace ullage::engines::pytorch
