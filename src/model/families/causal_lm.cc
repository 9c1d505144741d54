#include "model/families/causal_lm.h"

namespace ullage::model {

void tie_head(Architecture& arch) {
  arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
}

Output causal_lm_output(Modules& m, const Architecture& arch, const Tensor& hidden, const Batch& batch) {
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, tensor::slice(hidden, 1, 0, hidden.size(1)));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
