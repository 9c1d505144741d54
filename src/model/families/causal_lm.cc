#include "model/families/causal_lm.h"

namespace ullage::model {

void tie_head(Architecture& arch) {
  arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
}

Tensor kept_tokens(const Tensor& hidden, const Batch& batch) {
  const std::int64_t seq = hidden.size(1);
  return tensor::slice(hidden, 1, batch.logits_to_keep > 0 ? seq - batch.logits_to_keep : 0, seq);
}

Output causal_lm_output(Modules& m, const Architecture& arch, const Tensor& hidden, const Batch& batch) {
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, kept_tokens(hidden, batch));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
