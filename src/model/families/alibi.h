// ALiBi: attention scores are lowered with the distance of query and key, by a slope of each head's own.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// As BLOOM and Falcon write it (build_alibi_tensor): [batch, heads, seq], without gradient. `mask` says which tokens
// count, [batch, seq]; `slope_dtype` is what the slopes are converted to before they meet the positions.
Tensor alibi_of_tokens(const Tensor& mask, std::int64_t heads, DType slope_dtype, DType dtype);

}  // namespace ullage::model
