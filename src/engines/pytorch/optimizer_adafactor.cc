// torch.optim.Adafactor (2.14): the second moment of a matrix as a row and a column, that of a vector in full.
#include "engines/pytorch/stepping.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Dims;
using t::Op;
using t::Tensor;

namespace {

bool is_matrix(const Tensor& parameter) { return parameter.dim() > 1; }

Dims with_one(Dims sizes, int dim) {
  sizes[dim] = 1;
  return sizes;
}

Tensor reduced(t::Context& context, Op op, const Tensor& x, int dim) {
  context.record_op(op, 2 * x.numel(), x.bytes());
  return context.make(with_one(x.sizes(), dim), x.dtype());
}

void norm_of_all(t::Context& context, const Tensor& x) {
  context.record_op(Op::norm, 2 * x.numel(), x.bytes());
  context.make({}, x.dtype());
}

// row @ column
Tensor estimate_of(t::Context& context, const Tensor& parameter) {
  context.record_op(Op::mm, 2 * parameter.numel(), parameter.bytes());
  return context.make(parameter.sizes(), parameter.dtype());
}

// The local names of torch's loop, which keep their tensors from one parameter to the next.
struct Bound {
  Tensor row_mean, column_mean, estimate, squared, update;
};

void step_matrix(const Stepping& s, std::size_t i, Bound& bound) {
  const Tensor& parameter = s.model.trainable()[i];
  const Tensor& row = s.states[i][s.states[i].size() - 2];
  bound.row_mean = reduced(s.context, Op::norm, parameter, -1);
  bound.column_mean = reduced(s.context, Op::norm, parameter, -2);
  bound.estimate = estimate_of(s.context, parameter);
  reduced(s.context, Op::mean, row, -2);
}

void step_vector(const Stepping& s, std::size_t i, Bound& bound) {
  const Tensor& variance = s.states[i].back();
  bound.squared = unary_like(s, Op::mul, s.model.trainable()[i]);
  bound.estimate = unary_like(s, Op::clone, variance);
}

void step_loop(const Stepping& s, const Group& parameters) {
  Bound bound;
  for (const std::size_t i : parameters) {
    const PerParameter section(s, i);
    const Tensor& parameter = s.model.trainable()[i];
    norm_of_all(s.context, parameter);
    if (is_matrix(parameter)) step_matrix(s, i, bound);
    else step_vector(s, i, bound);
    bound.update = bound.estimate;
    norm_of_all(s.context, bound.update);
  }
}

void norms(const Stepping& s, const Group& group) {
  for (const std::size_t i : group) {
    const PerParameter section(s, i);
    norm_of_all(s.context, s.model.trainable()[i]);
  }
}

TensorList matrix_estimates(const Stepping& s, const Group& group) {
  const auto trainable = [&](std::size_t i) -> const Tensor& { return s.model.trainable()[i]; };
  for (const int dim : {-1, -2}) {
    TensorList means =
        make_list(s, group, [&](std::size_t i) { return reduced(s.context, Op::norm, trainable(i), dim); });
    release(s, group, means);
  }
  TensorList estimates = make_list(s, group, [&](std::size_t i) { return estimate_of(s.context, trainable(i)); });
  TensorList row_means = make_list(
      s, group, [&](std::size_t i) { return reduced(s.context, Op::mean, s.states[i][s.states[i].size() - 2], -2); });
  release(s, group, row_means);
  return estimates;
}

TensorList vector_estimates(const Stepping& s, const Group& group) {
  TensorList squared =
      make_list(s, group, [&](std::size_t i) { return unary_like(s, Op::mul, s.model.trainable()[i]); });
  release(s, group, squared);
  return make_list(s, group, [&](std::size_t i) { return unary_like(s, Op::clone, s.states[i].back()); });
}

// Matrices and vectors of each type are lists of their own, in the order in which the first of each comes.
std::vector<Group> groups_by_shape(const Stepping& s, const Group& parameters) {
  std::vector<Group> out;
  for (const Group& group : groups_by_type(s, parameters)) {
    Group parts[2];
    for (const std::size_t i : group) parts[is_matrix(s.model.trainable()[i]) ? 1 : 0].push_back(i);
    const bool matrices_first = is_matrix(s.model.trainable()[group.front()]);
    for (const bool matrices : {matrices_first, !matrices_first}) {
      if (!parts[matrices ? 1 : 0].empty()) out.push_back(std::move(parts[matrices ? 1 : 0]));
    }
  }
  return out;
}

void step_foreach(const Stepping& s, const Group& parameters) {
  BoundList estimates(s);
  BoundList updates(s);
  for (const Group& group : groups_by_shape(s, parameters)) {
    if (!s.context.policy().cuda) t::empty(s.context, Op::empty, {}, DType::f32);
    norms(s, group);
    TensorList made =
        is_matrix(s.model.trainable()[group.front()]) ? matrix_estimates(s, group) : vector_estimates(s, group);
    TensorList same = made;
    estimates.bind(group, std::move(made));
    updates.bind(group, std::move(same));
    norms(s, group);
  }
}

}  // namespace

void step_adafactor(const Stepping& s, const Group& parameters) {
  if (s.options.optimizer_impl == OptimizerImpl::foreach) step_foreach(s, parameters);
  else step_loop(s, parameters);
}

}  // namespace ullage::engines::pytorch
