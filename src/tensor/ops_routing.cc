// What routes tokens to experts: ranking, gathering and scattering rows, and products of groups of rows.
#include "tensor/elementwise.h"
#include "tensor/masked_rows.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

// Puts `values` into zeros of `sizes`. For real the zeros are filled in place; a tracer sees them beside the result.
Tensor into_zeros(Op op, const Tensor& values, const Dims& sizes) {
  Context& context = values.context();
  Tensor zeros = empty(context, Op::zeros, sizes, values.dtype());
  if (!context.policy().traced) {
    context.record_op(op, 0, 2 * values.bytes());
    return zeros;
  }
  return empty(context, op, sizes, values.dtype());
}

// Slot: the indices. number[0]: whether the gradient lacks the last dimension.
void ranking_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor indices = unpack(node, 0);
  out[0] = into_zeros(Op::scatter, in[0], node.dims);
}

Ranked rank_last(Op op, const Tensor& x, std::int64_t k, bool keep) {
  Context& context = x.context();
  Recording record(context, ranking_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  Dims sizes = x.sizes();
  if (keep) sizes[-1] = k;
  else sizes.erase(sizes.size() - 1);
  context.record_op(op, x.numel(), x.bytes());
  Ranked out;
  out.values = context.make(sizes, x.dtype());
  out.indices = context.make(sizes, DType::i64);
  save_output(record.node(), out.indices);
  out.values = record.finish(std::move(out.values));
  return out;
}

// Slot: the rows.
void index_rows_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor rows = unpack(node, 0);
  out[0] = into_zeros(Op::index_put, in[0], node.dims);
}

void index_rows_by_host_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = into_zeros(Op::index_put, in[0], node.dims);
}

// Slot: the mask.
void index_by_mask_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = unpack(node, 0);
  out[0] = into_zeros(Op::index_put, in[0], node.dims);
}

// Slot: the mask. The whole's gradient has zeros where the values went, whose own is what the mask picks.
void put_by_mask_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor mask = unpack(node, 0);
  if (node.wants(0)) {
    const Tensor zeros = empty(context, Op::zeros, node.dims, in[0].dtype());
    out[0] = empty(context, Op::index_put, in[0].sizes(), in[0].dtype());
  }
  if (node.wants(1)) out[1] = empty(context, Op::index, node.dims, in[0].dtype());
}

// Slots: the rows, and what was added, which only its sizes are wanted of.
void index_add_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor rows = unpack(node, 0);
  const Tensor x = unpack(node, 1);
  out[0] = empty(*node.context, Op::index, x.sizes(), in[0].dtype());
}

// Slots: the source, which only its sizes are wanted of, and the indices.
void gather_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor source = unpack(node, 0);
  const Tensor indices = unpack(node, 1);
  out[0] = into_zeros(Op::scatter, in[0], source.sizes());
}

void masked_fill_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = unpack(node, 0);
  out[0] = masked_fill(in[0], mask);
}

// The gradient is cleared where a number was put.
void scatter_value_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor indices = unpack(node, 0);
  out[0] = elementwise(Op::scatter, in[0], in[0].dtype());
}

// Slots: picked, chosen, gates. Minus the gradient's share of each gate, and the gradient itself where the choice is.
void mixer_multiplier_backward(Node& node, Gradients& in, Gradients& out) {
  {
    const Tensor picked = unpack(node, 0);
    const Tensor chosen = unpack(node, 1);
    const Tensor gates = unpack(node, 2);
    const Tensor gradient = mul(in[0], picked);
    Tensor negated = mul_scalar(gradient);
    out[0] = mul(gates, std::move(negated));
  }
  // A function written in Python has let go of its gradient when those it made are fitted to their receivers.
  in[0].reset();
}

void sum_dim_backward(Node& node, Gradients& in, Gradients& out) {
  Tensor gradient = in[0];
  if (node.number[1] == 0) {
    Dims sizes = gradient.sizes();
    Dims strides = gradient.strides();
    const auto at = static_cast<int>(node.number[0]);
    const std::int64_t stride = at < sizes.size() ? sizes[at] * strides[at] : 1;
    sizes.insert(at, 1);
    strides.insert(at, stride);
    gradient = node.context->alias(gradient, sizes, strides);
  }
  out[0] = expand(std::move(gradient), node.dims);
}

// Slots: x as it was (if y wants a gradient), y. -gradient * ((x / y) / y), then gradient / y.
void div_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = node.wants(1) ? unpack(node, 0) : Tensor{};
  const Tensor y = unpack(node, node.wants(1) ? 1 : 0);
  if (node.wants(1)) {
    const Tensor quotient = elementwise(Op::div, x, y, promote(x.dtype(), y.dtype()));
    const Tensor twice = elementwise(Op::div, quotient, y, quotient.dtype());
    const Tensor negated = neg(in[0]);
    out[1] = mul(negated, twice);
  }
  if (node.wants(0)) out[0] = elementwise(Op::div, in[0], y, promote(in[0].dtype(), y.dtype()));
}

// Slot: the factor.
void mul_in_place_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor factor = unpack(node, 0);
  out[0] = mul(in[0], factor);
}

// A copy of the whole gradient, into which the view's is put (CopySlices).
void mul_view_in_place_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor whole = empty(*node.context, Op::copy, in[0].sizes(), in[0].dtype());
  const Tensor seen = view(whole, node.dims);
  const Tensor part = clone(seen, contiguous_strides(node.dims));
  const Tensor factor = unpack(node, 0);
  const Tensor product = mul(part, factor);
  out[0] = whole;
}

// What was added is a view of the whole: the whole's gradient is a copy, and the view's a copy of that.
void add_to_squeezed_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor whole = empty(*node.context, Op::copy, in[0].sizes(), in[0].dtype());
  const Tensor squeezed = squeeze(whole, static_cast<int>(node.number[0]));
  const Tensor part = clone(squeezed, contiguous_strides(node.dims));
  out[0] = whole;
  out[1] = part;
}

Tensor grouped_product(Context& context, const Dims& sizes, std::int64_t multiplications, const Tensor& a,
                       const Tensor& b) {
  const std::int64_t n = numel(sizes);
  context.record_op(Op::grouped_mm, 2 * multiplications, a.bytes() + b.bytes() + n * size_of(a.dtype()));
  return context.make(sizes, a.dtype());
}

// Slots: x (if the weight trains), weight (if x wants a gradient), offsets. The weight's gradient is written in the
// weight's own memory order. number[0]: whether that is [groups, out, in] seen from the other side.
void grouped_mm_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor x = node.wants(1) ? unpack(node, 0) : Tensor{};
  const Tensor weight = node.wants(0) ? unpack(node, node.wants(1) ? 1 : 0) : Tensor{};
  const Tensor offsets = unpack(node, node.saved.size() - 1);
  const Dims& sizes = node.dims;  // [groups, in, out]
  const std::int64_t multiplications = in[0].size(0) * sizes[1] * sizes[2];
  if (node.wants(1)) {
    if (node.number[0] != 0) {
      Tensor made = grouped_product(context, {sizes[0], sizes[2], sizes[1]}, multiplications, in[0], x);
      out[1] = transpose(std::move(made), -2, -1);
    } else {
      out[1] = grouped_product(context, sizes, multiplications, x, in[0]);
    }
  }
  if (node.wants(0)) out[0] = grouped_product(context, {in[0].size(0), sizes[1]}, multiplications, in[0], weight);
}

}  // namespace

Ranked topk(Tensor x_in, std::int64_t k) {
  const Tensor x = std::move(x_in);
  return rank_last(Op::topk, x, k, true);
}

Ranked max_last(Tensor x_in, bool keep) {
  const Tensor x = std::move(x_in);
  return rank_last(Op::maximum, x, 1, keep);
}

Ranked sort(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  context.record_op(Op::sort, x.numel(), 2 * x.bytes());
  Ranked out;
  out.values = context.make(x.sizes(), x.dtype());
  out.indices = context.make(x.sizes(), DType::i64);
  return out;
}

Tensor index_rows(Tensor x_in, Tensor rows_in) {
  const Tensor x = std::move(x_in);
  const Tensor rows = std::move(rows_in);
  Context& context = x.context();
  Recording record(context, index_rows_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  save_input(record.node(), rows);
  Dims sizes = rows.sizes();
  for (int i = 1; i < x.dim(); ++i) sizes.push_back(x.size(i));
  return record.finish(empty(context, Op::index, sizes, x.dtype()));
}

Tensor index_rows_by_host(Tensor x_in, std::int64_t rows) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, index_rows_by_host_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  Dims sizes = x.sizes();
  sizes[0] = rows;
  Tensor on_card;
  if (context.policy().cuda && !context.policy().traced) on_card = empty(context, Op::copy, {rows}, DType::i64);
  return record.finish(empty(context, Op::index, sizes, x.dtype()));
}

Tensor index_by_mask(Tensor x_in, Tensor mask_in, std::int64_t rows) {
  const Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in);
  Context& context = x.context();
  Recording record(context, index_by_mask_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  save_input(record.node(), mask);
  Tensor numbers;  // of the true entries (TensorAdvancedIndexing.cpp, expandTensors)
  if (context.policy().cuda && !context.policy().traced)
    numbers = empty(context, Op::index, {rows, mask.dim()}, DType::i64);
  return record.finish(empty(context, Op::index, {rows, x.size(-1)}, x.dtype()));
}

void put_by_mask(const Tensor& x, Tensor mask_in, Tensor values_in) {
  const Tensor mask = std::move(mask_in);
  const Tensor values = std::move(values_in);
  Recording record(x.context(), put_by_mask_backward, {&x, &values});
  if (record) record.node()->dims = values.sizes();
  save_input(record.node(), mask);
  x.context().record_op(Op::index_put, 0, 2 * values.bytes());
  record.finish(x);
}

Tensor repeat_rows(Tensor x_in, std::int64_t times) {
  Tensor x = std::move(x_in);
  const Dims sizes{x.size(0), times, x.size(1)};
  const Dims merged{x.size(0) * times, x.size(1)};
  x = unsqueeze(std::move(x), 1);
  x = expand(std::move(x), sizes);
  x = copy_contiguous(std::move(x));
  return view(std::move(x), merged);
}

Tensor index_add(Tensor x_in, Tensor rows_in, std::int64_t into) {
  const Tensor x = std::move(x_in);
  const Tensor rows = std::move(rows_in);
  Recording record(x.context(), index_add_backward, {&x});
  save_input(record.node(), rows);
  save_input(record.node(), x);
  return record.finish(empty(x.context(), Op::index_put, {into, x.size(1)}, x.dtype()));
}

Tensor gather_last(Tensor x_in, Tensor indices_in) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Recording record(x.context(), gather_backward, {&x});
  save_input(record.node(), x);
  save_input(record.node(), indices);
  return record.finish(empty(x.context(), Op::gather, indices.sizes(), x.dtype()));
}

Tensor scatter_value(Tensor x_in, Tensor indices_in) {
  const Tensor x = std::move(x_in);
  const Tensor indices = std::move(indices_in);
  Recording record(x.context(), scatter_value_backward, {&x});
  save_input(record.node(), indices);
  return record.finish(elementwise(Op::scatter, x, x.dtype()));
}

Tensor mixer_multiplier(Tensor scores_in, Tensor picked_in, Tensor chosen_in, Tensor gates_in, Tensor factor_in) {
  const Tensor scores = std::move(scores_in);
  const Tensor picked = std::move(picked_in);
  const Tensor chosen = std::move(chosen_in);
  const Tensor gates = std::move(gates_in);
  const Tensor factor = std::move(factor_in);
  Recording record(scores.context(), mixer_multiplier_backward, {&scores, &picked, &gates});
  Tensor out = elementwise(Op::mul, picked, factor, picked.dtype());
  for (const Tensor* saved : {&picked, &chosen, &gates}) save_input(record.node(), *saved);
  return record.finish(std::move(out));
}

Tensor masked_fill(Tensor x_in, Tensor mask_in) {
  const Tensor x = std::move(x_in);
  const Tensor mask = std::move(mask_in);
  Recording record(x.context(), masked_fill_backward, {&x});
  save_input(record.node(), mask);
  return record.finish(elementwise(Op::masked_fill, x, mask, x.dtype()));
}

void masked_fill_in_place(const Tensor& x, Tensor mask_in) {
  const Tensor mask = std::move(mask_in);
  Recording record(x.context(), masked_fill_backward, {&x});
  save_input(record.node(), mask);
  x.context().record_op(Op::masked_fill, x.numel(), 2 * x.bytes() + mask.bytes());
  record.finish(x);
}

Tensor sum_dim(Tensor x_in, int dim, bool keep) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  if (dim < 0) dim += x.dim();
  Recording record(context, sum_dim_backward, {&x});
  if (record) {
    record.node()->dims = x.sizes();
    record.node()->number[0] = dim;
    record.node()->number[1] = keep ? 1 : 0;
  }
  Dims sizes = x.sizes();
  if (keep) sizes[dim] = 1;
  else sizes.erase(dim);
  // Autocast sets the type of a sum that was given none (fp32_set_opt_dtype).
  const DType dtype = context.autocasts_on_cuda() && is_half(x.dtype()) ? DType::f32 : x.dtype();
  context.record_op(Op::sum, x.numel(), x.bytes() + numel(sizes) * size_of(dtype));
  return record.finish(context.make(sizes, dtype));
}

void mul_in_place(const Tensor& x, Tensor factor_in) {
  const Tensor factor = std::move(factor_in);
  Recording record(x.context(), mul_in_place_backward, {&x});
  save_input(record.node(), factor);
  x.context().record_op(Op::mul, x.numel(), 3 * x.bytes());
  record.finish(x);
}

void mul_view_in_place(const Tensor& x, Tensor factor_in) {
  const Tensor factor = std::move(factor_in);
  Recording record(x.context(), mul_view_in_place_backward, {&x});
  if (record) record.node()->dims = factor.sizes();
  save_input(record.node(), factor);
  x.context().record_op(Op::mul, x.numel(), 3 * x.bytes());
  record.finish(x);
}

void div_in_place(const Tensor& x, Tensor y_in) {
  const Tensor y = std::move(y_in);
  Recording record(x.context(), div_backward, {&x, &y});
  {
    // The graph needs x as it was.
    const Tensor before = record.wants(1) ? clone(x, strides_like(x.sizes(), x.strides())) : Tensor{};
    if (before) save_input(record.node(), before);
  }
  save_input(record.node(), y);
  x.context().record_op(Op::div, x.numel(), 2 * x.bytes() + y.bytes());
  record.finish(x);
}

void add_to_squeezed(const Tensor& x, int at, Tensor y_in) {
  const Tensor y = std::move(y_in);
  Recording record(x.context(), add_to_squeezed_backward, {&x, &y});
  if (record) {
    record.node()->number[0] = at;
    record.node()->dims = y.sizes();
  }
  add_in_place(x, y);
  record.finish(x);
}

Tensor grouped_mm(Tensor x_in, Tensor weight_in, Tensor offsets_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor offsets = std::move(offsets_in);
  Context& context = x.context();
  Recording record(context, grouped_mm_backward, {&x, &weight});
  if (record) {
    record.node()->dims = weight.sizes();
    const Dims& strides = weight.strides();
    record.node()->number[0] = strides[1] == 1 && strides[2] == weight.size(1) ? 1 : 0;
  }
  if (record.wants(1)) save_input(record.node(), x);
  if (record.wants(0)) save_input(record.node(), weight);
  save_input(record.node(), offsets);
  return record.finish(
      grouped_product(context, {x.size(0), weight.size(2)}, x.size(0) * weight.size(1) * weight.size(2), x, weight));
}

}  // namespace ullage::tensor
