// Causal masks as transformers' masking_utils makes them: from index arithmetic, as truth values.
#pragma once

#include <optional>

#include "model/modules.h"

namespace ullage::engines::pytorch {

struct MaskShape {
  std::int64_t batch = 0;
  std::int64_t seq = 0;   // queries
  std::int64_t keys = 0;  // tokens before them included
};

// Whether a query may look at a key: [1 or batch, 1, seq, keys].
tensor::Tensor allowed_keys(tensor::Context& context, std::optional<std::int64_t> window,
                            const model::MaskSource& source, const MaskShape& shape);

}  // namespace ullage::engines::pytorch
