// Activation checkpointing (recompute), in both of PyTorch's variants (torch/utils/checkpoint.py).
#pragma once

#include "tensor/context.h"

namespace ullage::tensor {

// Non-reentrant: the region runs with its graph, but every tensor it would save becomes a ticket. The first ticket to
// be used runs the region again; that rerun ends at the moment in which the last ticket is filled.
RegionOutput checkpoint(Context& context, Region region, Tensor input, Tensor extra = {});

// Reentrant: the region runs without a graph and is one node; backward runs it again in full, with a backward pass of
// its own.
RegionOutput checkpoint_reentrant(Context& context, Region region, Tensor input, Tensor extra = {});

}  // namespace ullage::tensor
