// Parts of models whose code is published beside their weights instead of in transformers. They share habits of its
// older versions: the loss of logits shifted by copying, masks as whole tensors, norms that cast late.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// When an RMS norm goes back from fp32 to its input's type.
enum class NormCast : std::uint8_t {
  before_weight,  // once normalised; only the statistics' input is a copy in fp32 (Baichuan)
  after_weight,   // at the end (ChatGLM)
  whole,          // the whole input is converted first and back before the weight (Qwen)
};
Tensor rms_norm(Modules& modules, const Norm& norm, NormCast cast, const Tensor& x);

// `logits` without the last token and labels without the first, copied and flattened.
struct Shifted {
  Tensor logits;
  Tensor targets;
};
Shifted shift_by_one(const Tensor& logits, const Tensor& labels);
// Their mean cross entropy, in the logits' own type.
Tensor shifted_loss(const Tensor& logits, const Tensor& labels);

// A causal mask and one of the tokens that count (all of them), added: [batch, 1, seq, seq].
Tensor whole_causal_mask(tensor::Context& context, std::int64_t batch, std::int64_t seq, DType dtype);

// cos and sin of the positions, [1, 1, seq, dim] each, looked up in tables; a copy in every layer.
RotaryTables look_up_rotary(tensor::Context& context, std::int64_t seq, std::int64_t dim, DType dtype);

// 1 / base^(x / dim) for the numbers of a rotary embedding's frequencies.
Tensor inverse_frequencies(Tensor numbers);

// x with its halves exchanged and one negated.
Tensor rotate_half(const Tensor& x);

}  // namespace ullage::model
