// What models share that are told each token they should give: encoders trained on masked tokens and encoder-decoders.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// Mean cross entropy of each token with the label at its own place; logits [batch, seq, vocab], labels [batch, seq].
Tensor token_loss(Modules& m, const Tensor& logits, const Tensor& labels);

// The decoder's tokens: the labels moved on by one, behind a start token.
Tensor shift_right(Modules& m, const Tensor& labels);

}  // namespace ullage::model
