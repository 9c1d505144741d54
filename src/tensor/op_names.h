// Names of the operators, interned in every timeline in this order, so that recording one costs no look-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ullage::tensor {

// clang-format off
#define ULLAGE_OPERATORS(X) \
  X(empty) X(zeros) X(ones_like) X(zeros_like) X(arange) X(randint) X(copy) X(cast) X(clone) X(cat) X(pad) \
  X(add) X(add_) X(sub) X(mul) X(div) X(neg) X(pow) X(rsqrt) X(sqrt) X(cos) X(sin) X(tanh) X(sigmoid) X(silu) X(gelu) X(relu) \
  X(silu_backward) X(gelu_backward) X(threshold_backward) X(tanh_backward) X(sigmoid_backward) X(slice_backward) \
  X(clamp) X(clamp_) X(hardtanh_) X(hardtanh_backward) X(relu_) X(lerp_) X(addcmul_) X(addcdiv_) X(maximum) X(compare) X(logical_and) X(logical_not) X(where) X(index) \
  X(mean) X(sum) X(norm) X(mm) X(addmm) X(bmm) X(baddbmm) X(embedding) X(embedding_backward) \
  X(softmax) X(softmax_backward) X(log_softmax) X(log_softmax_backward) X(nll_loss) X(nll_loss_backward) \
  X(layer_norm) X(layer_norm_backward) X(rms_norm) X(rms_norm_backward) X(dropout) X(dropout_backward) \
  X(flash_attention) X(flash_attention_backward) X(efficient_attention) X(efficient_attention_backward) \
  X(conv2d) X(conv2d_backward) X(batch_norm) X(batch_norm_backward) X(max_pool2d) X(max_pool2d_backward) \
  X(avg_pool2d) X(avg_pool2d_backward) X(adaptive_avg_pool2d) X(adaptive_avg_pool2d_backward) \
  X(topk) X(sort) X(gather) X(scatter) X(index_put) X(masked_fill) X(histc) X(cumsum) X(floor_divide) X(grouped_mm) X(polar) X(abs) X(log) \
  X(select_backward) X(repeat) \
  X(adamw) X(sgd) X(adagrad) X(eye) X(quantize) X(dequantize) X(parameter) X(cudnn_attention) X(cudnn_attention_backward) \
  X(conv3d) X(conv3d_backward) X(masked_scatter) X(masked_scatter_backward) X(prod) X(unique_consecutive) X(min)
// clang-format on

enum class Op : std::uint16_t {
#define ULLAGE_OPERATOR(name) name,
  ULLAGE_OPERATORS(ULLAGE_OPERATOR)
#undef ULLAGE_OPERATOR
};

inline constexpr auto kOpNames = std::to_array<std::string_view>({
#define ULLAGE_OPERATOR(name) #name,
    ULLAGE_OPERATORS(ULLAGE_OPERATOR)
#undef ULLAGE_OPERATOR
});

}  // namespace ullage::tensor
