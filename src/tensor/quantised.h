// Products with weights of four and eight bits, as bitsandbytes makes them (0.50: nn/modules.py,
// autograd/_functions.py, backends/cuda/ops.py). What its functions keep for backward they keep outside of autograd's
// saved tensors, so that recompute does not see it.
#pragma once

#include <vector>

#include "tensor/context.h"

namespace ullage::tensor {

// bitsandbytes' QuantState. Maxima that are quantised themselves come with maxima of their own.
struct FourBitWeight {
  Tensor packed;         // two codes a byte
  Tensor maxima;         // of blocks of 64: fp32, or codes of 8 bits
  Tensor nested_maxima;  // of blocks of 256 of those; empty without double quantisation
  std::vector<Tensor> tables;
  Dims shape;                 // [out, in]
  DType dtype = DType::bf16;  // before it was quantised
  // Of older versions: every product dequantises the weight first (before 0.50), and its node keeps what was multiplied
  // (before 0.43.3).
  bool dequantises_first = false;
  bool keeps_input = false;
};

struct EightBitWeight {
  Tensor codes;   // [out, in]
  Tensor scales;  // [out], fp32
};

// GPTQ's and AWQ's weights, of four bits in groups of 128 along the input, as GPTQModel multiplies them with PyTorch's
// own operators (nn_modules/qlinear/{__init__,torch,torch_awq}.py): the whole weight is unpacked for each product, and
// the product keeps it for backward.
struct PackedWeight {
  Tensor codes;         // eight in an i32: [in / 8, out]; AWQ: [in, out / 8]
  Tensor zeros;         // [groups, out / 8]
  Tensor scales;        // [groups, out], of half precision
  Tensor group_of_row;  // [in]; GPTQ alone, as the next
  std::vector<Tensor> shifts;
  Dims shape;  // [out, in]
  bool is_awq() const { return !group_of_row; }
};

// torchao's NF4Tensor: blocks of 64, whose scales are quantised in blocks of 256.
struct NF4Weight {
  Tensor packed;  // two codes a byte
  std::vector<Tensor> tables;
  Dims shape;                 // [out, in]
  DType dtype = DType::bf16;  // before it was quantised, and of what a product unpacks
};
inline constexpr std::int64_t kNF4Period = 64 * 256;  // a weight has a multiple of so many elements
NF4Weight make_nf4(Context& context, const Dims& shape, DType dtype);
// Its bytes, and the elements of its tables that have its own type.
std::int64_t nf4_bytes(std::int64_t elements);
std::int64_t nf4_typed_elements(std::int64_t elements);
// x [..., in] times the unpacked weight, which backward unpacks again. The weight outlives the graph.
Tensor linear_nf4(Tensor x, const NF4Weight& weight, bool compiled);

// fp8 with a scale for each block of 128 x 128 (transformers: integrations/finegrained_fp8.py, FP8Linear).
struct BlockScaledWeight {
  Tensor codes;   // [out, in], a byte each
  Tensor scales;  // [blocks of out, blocks of in], fp32
};
inline constexpr std::int64_t kScaledBlock = 128;
std::int64_t block_scaled_bytes(std::int64_t out, std::int64_t in);
BlockScaledWeight make_block_scaled(Context& context, const Dims& shape);
// By the Triton kernel, which quantises what comes in as it reads: nothing but the result is made, and a bias is added
// to that in place. For inference alone.
Tensor matmul_block_scaled(Tensor x, const BlockScaledWeight& weight);

// A new weight of [out, in] with the tables that belong to it.
FourBitWeight make_four_bit(Context& context, const Dims& shape, DType dtype, bool double_quantised);
EightBitWeight make_eight_bit(Context& context, const Dims& shape);
PackedWeight make_packed(Context& context, const Dims& shape, bool awq, DType scales);
std::int64_t packed_bytes(std::int64_t out, std::int64_t in, bool awq);
inline constexpr std::int64_t kPackedGroup = 128;  // rows of a group
inline constexpr std::int64_t kPackedCodes = 8;    // of an i32
std::int64_t four_bit_bytes(std::int64_t elements, bool double_quantised);
std::int64_t eight_bit_bytes(std::int64_t elements, std::int64_t rows);

// x [..., in], bias [out] in x's type or empty. The weight outlives the graph.
Tensor matmul_4bit(Tensor x, const FourBitWeight& weight, Tensor bias);
// No feature is taken for an outlier: which are, only the data knows.
Tensor matmul_8bit(Tensor x, const EightBitWeight& weight, Tensor bias);

// The same by a kernel that unpacks what it multiplies (GPTQModel's Marlin, nn_modules/qlinear/marlin.py): nothing but
// the result is made, and a bias is added to that in place. For inference alone.
Tensor matmul_packed(Tensor x, const PackedWeight& weight);

// [in, out] in half precision: GPTQ's in its scales' type, AWQ's in `dtype`.
Tensor unpacked(const PackedWeight& weight, DType dtype);
// x += bias, recorded, where x is a view and the bias has no gradient.
void add_bias_to_view(const Tensor& x, const Tensor& bias);

}  // namespace ullage::tensor
