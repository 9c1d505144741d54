// torch.nn.utils.clip_grad_norm_ (2.14).
#include "engines/pytorch/optimizer.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

StackedNorms clip_grad_norm(const Stepping& s) {
  t::Context& context = s.context;
  t::NoGrad no_grad(context);
  t::Restore<memory::Phase> phase(context.phase, memory::Phase::optimizer);
  const t::Scope named(context, context.intern("clip_grad_norm"));
  const std::vector<Group> groups = groups_by_type(s, all_parameters(s.model));
  // Norms of several types are stacked as fp32.
  const DType dtype = groups.size() == 1 ? s.model.trainable().front().dtype() : DType::f32;
  std::vector<TensorList> norms;
  std::int64_t count = 0;
  for (const Group& group : groups) {
    norms.push_back(make_list(s, group, [&](std::size_t i) {
      const Tensor& parameter = s.model.trainable()[i];
      context.record_op(Op::norm, 2 * parameter.numel(), parameter.bytes());
      return context.make({}, parameter.dtype());
    }));
    count += static_cast<std::int64_t>(group.size());
  }
  context.begin_section(memory::kNoLayer);
  StackedNorms out{memory::kNone, size_of(dtype), {}};
  {
    const Tensor stacked = t::empty(context, Op::cat, {count}, dtype);
    out.block = stacked.storage().block;
    out.total = t::empty(context, Op::norm, {}, dtype);
  }
  for (std::size_t k = 0; k < groups.size(); ++k) release(s, groups[k], norms[k]);
  context.begin_section(memory::kNoLayer);
  // coefficient = max_norm / (total + 1e-6), as a reciprocal times a number; then clamped, then multiplied in place.
  Tensor coefficient;
  {
    const Tensor shifted = t::add_scalar(out.total);
    Tensor reciprocal = t::empty(context, Op::div, {}, dtype);
    coefficient = t::mul_scalar(std::move(reciprocal));
  }
  const Tensor clamped = t::empty(context, Op::maximum, {}, dtype);
  return out;
}

}  // namespace ullage::engines::pytorch
