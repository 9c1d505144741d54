// What differs between the ways PyTorch runs the same program eagerly.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/attention_kernel.h"

namespace ullage::tensor {

struct Policy {
  std::string_view name;  // as --kernels calls it
  // Whether operators are CUDA's: Boolean dropout masks and fp32 statistics of norms.
  bool cuda = true;
  // Whether the program runs on fake tensors under a tracer instead of for real. Real eager mode adds a gradient into
  // one that it owns alone, a tracer sees a new tensor; what asks for a value (a search for packed sequences) is
  // skipped on fake tensors; the tracer's attention copies keys and values to all heads even when there is one query
  // head for each.
  bool traced = false;
  // Allocation sizes are rounded up to this (512 in PyTorch's CUDA caching allocator,
  // c10/cuda/CUDACachingAllocator.cpp).
  std::int64_t granularity_bytes = 512;
  Capability card;
  AttentionKernel (*attention)(const AttentionRequest&) = nullptr;
};

Policy cuda_policy(Capability card = {});  // PyTorch on a GPU
Policy cuda_traced_policy();               // CUDA's operators on fake tensors, as a tracer sees them
Policy cpu_policy();                       // PyTorch's CPU operators; sizes are the tensors' own

}  // namespace ullage::tensor
