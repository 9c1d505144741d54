// Which kernel PyTorch runs inside of scaled_dot_product_attention.
#pragma once

#include <compare>
#include <cstdint>

#include "base/dtype.h"

namespace ullage::tensor {

enum class AttentionKernel : std::uint8_t {
  flash,      // FlashAttention-2: half precision, no mask
  cudnn,      // cuDNN's: half precision, mask allowed
  efficient,  // memory-efficient attention: any precision, mask allowed
  math,       // composed of matmul and softmax
};

// NVIDIA's compute capability of the card. Where no card is named, kernels are those of the first that has flash.
struct Capability {
  int major = 8;
  int minor = 0;
  auto operator<=>(const Capability&) const = default;
};

// What decides.
struct AttentionRequest {
  Capability card;
  DType dtype = DType::bf16;
  bool mask = false;
  bool needs_gradient = true;
  double dropout = 0;
  std::int64_t head_dim = 0;  // of query and key
  std::int64_t value_head_dim = 0;
  std::int64_t queries = 2;  // positions
  std::int64_t keys = 2;
  bool grouped = false;  // fewer key and value heads than query heads
};

AttentionKernel attention_on_cuda(const AttentionRequest& request);
// The tracer's own choice: flash or memory-efficient, without looking at the card.
AttentionKernel attention_traced(const AttentionRequest& request);
AttentionKernel attention_on_cpu(const AttentionRequest& request);

}  // namespace ullage::tensor
