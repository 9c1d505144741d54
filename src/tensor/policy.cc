#include "tensor/policy.h"

namespace ullage::tensor {
namespace {

// Flash where it can run at all, memory-efficient elsewhere (ATen/native/transformers/sdp_utils.cpp lists the
// conditions; those on the card are checked by whoever knows the card).
AttentionKernel choose_on_cuda(const AttentionRequest& request) {
  const bool flash = is_half(request.dtype) && !request.mask && request.head_dim == request.value_head_dim;
  return flash ? AttentionKernel::flash : AttentionKernel::efficient;
}

// The CPU has a flash kernel of its own, for every floating type and with masks; dropout takes the composed path
// (ATen/native/transformers/sdp_utils_cpp.cpp).
AttentionKernel choose_on_cpu(const AttentionRequest& request) {
  return request.dropout ? AttentionKernel::math : AttentionKernel::flash;
}

constexpr std::int64_t kCudaGranularity = 512;

}  // namespace

Policy cuda_policy() { return {"cuda", true, false, kCudaGranularity, choose_on_cuda}; }
Policy cuda_traced_policy() { return {"cuda-traced", true, true, kCudaGranularity, choose_on_cuda}; }
Policy cpu_policy() { return {"cpu", false, true, 1, choose_on_cpu}; }

}  // namespace ullage::tensor
