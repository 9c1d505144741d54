#include "tensor/attention_kernel.h"

#include <cmath>

namespace ullage::tensor {
namespace {

// Checks of torch 2.14, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, whose names stand with them.
constexpr Capability kNewest{12, 1};
constexpr std::int64_t kMostFlashHeadDim = 256;
constexpr std::int64_t kMostCudnnHeadDim = 128;

bool is_between(Capability card, Capability oldest, Capability newest) { return oldest <= card && card <= newest; }

bool heads_are_equal(const AttentionRequest& r) { return r.head_dim == r.value_head_dim; }

// check_requires_grad_and_head_dim_gt192_constraints_on_sm86_89_or_120: what flash's backward has no room for.
bool flash_can_train(const AttentionRequest& r) {
  const bool small = is_between(r.card, {8, 6}, {8, 9}) || is_between(r.card, {12, 0}, {12, 1});
  if (!small || !r.needs_gradient) return true;
  return r.head_dim <= 192 || (r.dropout == 0 && r.head_dim > 224);
}

// can_use_flash_attention. Groups of heads are its own affair.
bool can_use_flash(const AttentionRequest& r) {
  return is_between(r.card, {8, 0}, kNewest) && is_half(r.dtype) && !r.mask && heads_are_equal(r) &&
         r.head_dim <= kMostFlashHeadDim && flash_can_train(r);
}

// minimum_gemm_alignment, in elements.
std::int64_t gemm_alignment(const AttentionRequest& r) {
  const bool half = is_half(r.dtype);
  const bool tensor_cores = r.card.major >= 8 || (r.card.major == 7 && half);
  if (tensor_cores) return half ? 8 : 4;
  return 1;
}

// can_use_mem_efficient_attention. It takes groups of heads since 2.14 (pytorch/pytorch#191085).
bool can_use_efficient(const AttentionRequest& r) {
  const std::int64_t alignment = gemm_alignment(r);
  const bool has_type = r.dtype == DType::f32 || r.dtype == DType::f16 || (r.dtype == DType::bf16 && r.card.major >= 8);
  return is_between(r.card, {5, 0}, kNewest) && has_type && r.head_dim % alignment == 0 &&
         r.value_head_dim % alignment == 0;
}

// check_prefer_cudnn_attention, for wheels built with CUDA 13 (cuDNN above 9.15): data-centre Hopper and Blackwell.
bool prefers_cudnn(Capability card) { return card.major == 9 || card.major == 10; }

// check_cudnn_tensor_shapes; a wider value is one shape of its own (DeepSeek's).
bool cudnn_has_shape(const AttentionRequest& r) {
  const bool narrow = r.head_dim <= kMostCudnnHeadDim && r.value_head_dim <= kMostCudnnHeadDim;
  const bool latent = r.head_dim == 192 && r.value_head_dim == 128;
  const bool aligned = r.head_dim % 8 == 0 && r.value_head_dim % 8 == 0;
  return (narrow || latent) && aligned && r.keys != 1 && !(r.dropout > 0 && r.queries == 1);
}

// can_use_cudnn_attention; check_cudnn_dropout: probabilities come in sixteenths.
bool can_use_cudnn(const AttentionRequest& r) {
  const bool dropout = r.dropout * 16 == std::floor(r.dropout * 16);
  return is_between(r.card, {8, 0}, kNewest) && is_half(r.dtype) && dropout && cudnn_has_shape(r);
}

}  // namespace

// select_sdp_backend.
AttentionKernel attention_on_cuda(const AttentionRequest& request) {
  if (prefers_cudnn(request.card) && can_use_cudnn(request)) return AttentionKernel::cudnn;
  if (can_use_flash(request)) return AttentionKernel::flash;
  return can_use_efficient(request) ? AttentionKernel::efficient : AttentionKernel::math;
}

AttentionKernel attention_traced(const AttentionRequest& request) {
  const bool flash = is_half(request.dtype) && !request.mask && heads_are_equal(request);
  return flash ? AttentionKernel::flash : AttentionKernel::efficient;
}

// The CPU has a flash kernel of its own, for every floating type and with masks; dropout takes the composed path
// (ATen/native/transformers/sdp_utils_cpp.cpp).
AttentionKernel attention_on_cpu(const AttentionRequest& request) {
  return request.dropout > 0 ? AttentionKernel::math : AttentionKernel::flash;
}

}  // namespace ullage::tensor
