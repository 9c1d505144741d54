// torch.optim.Muon (2.14), which takes matrices only.
#include <algorithm>

#include "engines/pytorch/stepping.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

namespace {

constexpr int kNewtonSchulzSteps = 5;  // DEFAULT_NS_STEPS

Tensor product(t::Context& context, Op op, std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  context.record_op(op, 2 * rows * inner * columns, 2 * (rows * inner + inner * columns + rows * columns));
  return context.make({rows, columns}, DType::bf16);
}

// The nearest orthogonal matrix, in bf16; a tall matrix is turned. Gram matrix and its polynomial stay bound while the
// next ones are made.
Tensor orthogonalised(const Tensor& update) {
  t::Context& context = update.context();
  Tensor x = t::to(update, DType::bf16);
  const std::int64_t rows = std::min(x.size(0), x.size(1));
  const std::int64_t columns = std::max(x.size(0), x.size(1));
  {
    const Tensor norm = t::empty(context, Op::norm, {}, DType::bf16);
    const Tensor clamped = t::empty(context, Op::maximum, {}, DType::bf16);
  }
  Tensor gram;
  Tensor polynomial;
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    gram = product(context, Op::mm, rows, columns, rows);
    polynomial = product(context, Op::addmm, rows, rows, rows);
    x = product(context, Op::addmm, rows, rows, columns);
  }
  return x;
}

}  // namespace

bool is_muon_matrix(const ModelState& model, std::size_t i) {
  return model.layer_of(i) != memory::kNoLayer && model.trainable()[i].dim() == 2;
}

void step_muon(const Stepping& s, const Group& matrices) {
  Tensor update;
  for (const std::size_t i : matrices) {
    const PerParameter section(s, i);
    update = unary_like(s, Op::lerp_, s.states[i].back());
    update = orthogonalised(update);
  }
}

}  // namespace ullage::engines::pytorch
