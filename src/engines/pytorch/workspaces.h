// Workspaces of cuBLAS, which PyTorch takes from its own allocator: one for each thread that multiplies matrices, when
// it first does, for as long as the process lives. A training step has two such threads, the program's and autograd's.
//
// Source: aten/src/ATen/cuda/CublasHandlePool.cpp (getCUDABlasWorkspace; one for each handle and stream).
#pragma once

#include <cstdint>

#include "engines/pytorch/options.h"
#include "engines/pytorch/train.h"

namespace ullage::engines::pytorch {

// Puts them into the step's timeline; moments and operators move on with their events. A `steady` step finds them
// there.
void add_workspaces(TrainRun& run, Step step, std::int64_t bytes);

}  // namespace ullage::engines::pytorch
