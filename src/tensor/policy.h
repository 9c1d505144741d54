// What differs between the ways PyTorch runs the same program eagerly.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace ullage::tensor {

enum class AttentionKernel : std::uint8_t {
  flash,      // FlashAttention-2: half precision, no mask
  efficient,  // memory-efficient attention: any precision, mask allowed
  math,       // composed of matmul and softmax
};

// What decides PyTorch's choice of kernel inside scaled_dot_product_attention.
struct AttentionRequest {
  DType dtype = DType::bf16;
  bool mask = false;
  bool dropout = false;
  std::int64_t head_dim = 0;        // of query and key
  std::int64_t value_head_dim = 0;
  bool grouped = false;             // fewer key and value heads than query heads
};

struct Policy {
  std::string_view name;  // as --kernels calls it
  // Whether operators are CUDA's: Boolean dropout masks and fp32 statistics of norms.
  bool cuda = true;
  // Real eager mode adds a gradient into one that it owns alone; fake tensors (any dispatch mode) make a new one.
  bool sums_in_place = true;
  // Allocation sizes are rounded up to this (512 in PyTorch's CUDA caching allocator, c10/cuda/CUDACachingAllocator.cpp).
  std::int64_t granularity_bytes = 512;
  // Whether grouped attention on a kernel without groups copies keys and values even when there is one query head each.
  bool interleaves_equal_heads = false;
  AttentionKernel (*attention)(const AttentionRequest&) = nullptr;
};

Policy cuda_policy();         // PyTorch on a GPU
Policy cuda_traced_policy();  // CUDA's operators on fake tensors, as a tracer sees them
Policy cpu_policy();          // PyTorch's CPU operators; sizes are the tensors' own

}  // namespace ullage::tensor
