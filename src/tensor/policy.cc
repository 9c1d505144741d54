#include "tensor/policy.h"

namespace ullage::tensor {
namespace {

constexpr std::int64_t kMostFlashHeadDim = 256;

bool flash_can_run(const AttentionRequest& request) {
  return is_half(request.dtype) && !request.mask && request.head_dim == request.value_head_dim;
}

// PyTorch's order of preference (ATen/native/transformers/cuda/sdp_utils.cpp): flash, memory-efficient, composed. The
// memory-efficient kernel takes no groups of heads, so grouped attention that flash cannot run is composed. What
// depends on the card is checked by whoever knows it.
AttentionKernel choose_on_cuda(const AttentionRequest& request) {
  if (flash_can_run(request) && request.head_dim <= kMostFlashHeadDim) return AttentionKernel::flash;
  return request.grouped ? AttentionKernel::math : AttentionKernel::efficient;
}

// The tracer's: flash or memory-efficient, keys and values repeated to all heads beforehand.
AttentionKernel choose_traced(const AttentionRequest& request) {
  return flash_can_run(request) ? AttentionKernel::flash : AttentionKernel::efficient;
}

// The CPU has a flash kernel of its own, for every floating type and with masks; dropout takes the composed path
// (ATen/native/transformers/sdp_utils_cpp.cpp).
AttentionKernel choose_on_cpu(const AttentionRequest& request) {
  return request.dropout ? AttentionKernel::math : AttentionKernel::flash;
}

constexpr std::int64_t kCudaGranularity = 512;

}  // namespace

Policy cuda_policy() { return {"cuda", true, false, kCudaGranularity, choose_on_cuda}; }
Policy cuda_traced_policy() { return {"cuda-traced", true, true, kCudaGranularity, choose_traced}; }
Policy cpu_policy() { return {"cpu", false, true, 1, choose_on_cpu}; }

}  // namespace ullage::tensor
