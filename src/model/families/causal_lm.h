// The end of a causal language model: head and loss.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// The head stores nothing of its own.
void tie_head(Architecture& architecture);

// A view of the tokens that the head is given.
Tensor kept_tokens(const Tensor& hidden, const Batch& batch);

// Logits of the body's result, and the loss where there are labels.
Output causal_lm_output(Modules& modules, const Architecture& architecture, const Tensor& hidden, const Batch& batch);

}  // namespace ullage::model
