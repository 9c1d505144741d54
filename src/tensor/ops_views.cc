// Creation, views and copies.
#include <array>

#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

int wrap(int dim, int dims) { return dim < 0 ? dim + dims : dim; }

// Fills in the one size given as -1.
Dims infer(Dims sizes, std::int64_t total) {
  std::int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) unknown = i;
    else known *= sizes[i];
  }
  if (unknown >= 0) sizes[unknown] = known == 0 ? 0 : total / known;
  return sizes;
}

// An alias with a graph entry. `dims` is what the backward function needs to undo the view.
Tensor view_node(const Tensor& x, BackwardFunction backward, const Dims& sizes, const Dims& strides, const Dims& dims) {
  Context& context = x.context();
  Recording record(context, backward, {&x});
  if (record) record.node()->dims = dims;
  return record.finish(context.alias(x, sizes, strides));
}

void view_backward(Node& node, Gradients& in, Gradients& out) { out[0] = reshape(in[0], node.dims); }

void transpose_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = transpose(in[0], static_cast<int>(node.number[0]), static_cast<int>(node.number[1]));
}

void unsqueeze_backward(Node& node, Gradients& in, Gradients& out) {
  Dims sizes = in[0].sizes();
  Dims strides = in[0].strides();
  sizes.erase(static_cast<int>(node.number[0]));
  strides.erase(static_cast<int>(node.number[0]));
  out[0] = node.context->alias(in[0], sizes, strides);
}

void expand_backward(Node& node, Gradients& in, Gradients& out) { out[0] = sum_to(in[0], node.dims); }

// A zero-filled tensor of the whole into which the gradient of the part is copied.
void slice_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = empty(*node.context, Op::slice_backward, node.dims, in[0].dtype());
}

void select_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = empty(*node.context, Op::select_backward, node.dims, in[0].dtype());
}

void split_backward(Node& node, Gradients& in, Gradients& out) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    // A part that got no gradient contributes zeros.
    parts.push_back(in[i] ? in[i] : empty(*node.context, Op::zeros, node.inputs[i].sizes, node.inputs[i].dtype));
  }
  out[0] = cat(std::move(parts), static_cast<int>(node.number[0]));
}

void clone_backward(Node& /*node*/, Gradients& in, Gradients& out) { out[0] = in[0]; }

void cast_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = to(in[0], static_cast<DType>(node.number[0]));
}

void cat_backward(Node& node, Gradients& in, Gradients& out) {
  const auto dim = static_cast<int>(node.number[0]);
  std::int64_t from = 0;
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    // Sizes along dim stand in the heap-free attributes only for two parts; the receivers know them all.
    const Edge& edge = node.edges[i];
    const std::int64_t size = edge.node ? edge.node->inputs[edge.input].sizes[dim] : node.number[1 + (i & 1)];
    if (edge.node) out[i] = slice(in[0], dim, from, from + size);
    from += size;
  }
}

// Every second element, or so, of the gradient: views.
void stack_last_backward(Node& node, Gradients& in, Gradients& out) {
  Dims sizes = in[0].sizes();
  Dims strides = in[0].strides();
  sizes.erase(sizes.size() - 1);
  strides.erase(strides.size() - 1);
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    if (node.wants(i)) out[i] = node.context->alias(in[0], sizes, strides);
  }
}

}  // namespace

Tensor empty(Context& context, Op op, const Dims& sizes, DType dtype) {
  context.record_op(op, 0, numel(sizes) * size_of(dtype));
  return context.make(sizes, dtype);
}

Tensor ones_like(const Tensor& like) {
  Context& context = like.context();
  context.record_op(Op::ones_like, 0, like.bytes());
  return context.make_in_order_of(like, like.dtype());
}

Tensor zeros_like(const Tensor& like) {
  Context& context = like.context();
  context.record_op(Op::zeros_like, 0, like.bytes());
  return context.make_in_order_of(like, like.dtype());
}

Tensor view(Tensor x_in, Dims sizes_in) {
  const Tensor x = std::move(x_in);
  const Dims sizes = infer(sizes_in, x.numel());
  if (x.contiguous()) return view_node(x, view_backward, sizes, contiguous_strides(sizes), x.sizes());
  Dims strides;
  [[maybe_unused]] const bool possible = view_strides(x.sizes(), x.strides(), sizes, strides);
  assert(possible);
  return view_node(x, view_backward, sizes, strides, x.sizes());
}

Tensor transpose(Tensor x_in, int a, int b) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  a = wrap(a, x.dim());
  b = wrap(b, x.dim());
  Recording record(context, transpose_backward, {&x});
  if (record) {
    record.node()->number[0] = a;
    record.node()->number[1] = b;
  }
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return record.finish(context.alias(x, sizes, strides));
}

Tensor unsqueeze(Tensor x_in, int at) {
  const Tensor x = std::move(x_in);
  at = wrap(at, x.dim() + 1);
  Recording record(x.context(), unsqueeze_backward, {&x});
  if (record) record.node()->number[0] = at;
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  const std::int64_t stride = at < x.dim() ? sizes[at] * strides[at] : 1;
  sizes.insert(at, 1);
  strides.insert(at, stride);
  return record.finish(x.context().alias(x, sizes, strides));
}

Tensor squeeze(Tensor x_in, int at) {
  const Tensor x = std::move(x_in);
  at = wrap(at, x.dim());
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes.erase(at);
  strides.erase(at);
  return view_node(x, view_backward, sizes, strides, x.sizes());
}

Tensor expand(Tensor x_in, const Dims& sizes) {
  const Tensor x = std::move(x_in);
  Dims strides = sizes;
  const int shift = sizes.size() - x.dim();
  for (int i = 0; i < sizes.size(); ++i) {
    const bool own = i >= shift && x.size(i - shift) == sizes[i];
    strides[i] = own ? x.strides()[i - shift] : 0;
  }
  return view_node(x, expand_backward, sizes, strides, x.sizes());
}

Tensor slice(Tensor x_in, int dim, std::int64_t from, std::int64_t to) {
  const Tensor x = std::move(x_in);
  // The whole is an alias, whose gradient needs no zeros around it.
  if (from == 0 && to == x.size(dim)) return view_node(x, view_backward, x.sizes(), x.strides(), x.sizes());
  Dims sizes = x.sizes();
  sizes[dim] = to - from;
  return view_node(x, slice_backward, sizes, x.strides(), x.sizes());
}

Tensor select(Tensor x_in, int dim, std::int64_t /*index*/) {
  const Tensor x = std::move(x_in);
  dim = wrap(dim, x.dim());
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes.erase(dim);
  strides.erase(dim);
  return view_node(x, select_backward, sizes, strides, x.sizes());
}

Tensor slice(Tensor x_in, int dim, std::int64_t from, std::int64_t to, std::int64_t step) {
  const Tensor x = std::move(x_in);
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes[dim] = (to - from + step - 1) / step;
  strides[dim] *= step;
  return view_node(x, slice_backward, sizes, strides, x.sizes());
}

std::vector<Tensor> split(Tensor x_in, std::int64_t size, int dim) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), split_backward, {&x});
  if (record) record.node()->number[0] = wrap(dim, x.dim());
  std::vector<Tensor> parts;
  for (std::int64_t from = 0; from < x.size(dim); from += size) {
    Dims sizes = x.sizes();
    sizes[dim] = std::min(size, x.size(dim) - from);
    parts.push_back(record.finish(x.context().alias(x, sizes, x.strides())));
  }
  return parts;
}

std::vector<Tensor> split(Tensor x_in, std::span<const std::int64_t> sizes, int dim) {
  const Tensor x = std::move(x_in);
  dim = wrap(dim, x.dim());
  Recording record(x.context(), split_backward, {&x});
  if (record) record.node()->number[0] = dim;
  std::vector<Tensor> parts;
  for (const std::int64_t part : sizes) {
    Dims part_sizes = x.sizes();
    part_sizes[dim] = part;
    parts.push_back(record.finish(x.context().alias(x, part_sizes, x.strides())));
  }
  return parts;
}

std::vector<Tensor> split(Tensor x, std::initializer_list<std::int64_t> sizes, int dim) {
  return split(std::move(x), std::span(sizes.begin(), sizes.size()), dim);
}

Tensor clone(const Tensor& x, const Dims& strides) {
  x.context().record_op(Op::clone, 0, 2 * x.bytes());
  return x.context().make(x.sizes(), strides, x.dtype());
}

Tensor clone_in_graph(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), clone_backward, {&x});
  return record.finish(clone(x, strides_like(x.sizes(), x.strides())));
}

Tensor contiguous(Tensor x_in) {
  Tensor x = std::move(x_in);
  return x.contiguous() ? x : copy_contiguous(std::move(x));
}

Tensor copy_contiguous(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), clone_backward, {&x});
  return record.finish(clone(x, contiguous_strides(x.sizes())));
}

Tensor reshape(Tensor x_in, Dims sizes_in) {
  Tensor x = std::move(x_in);
  const Dims sizes = infer(sizes_in, x.numel());
  if (x.contiguous()) return view(std::move(x), sizes);
  Dims strides;
  if (view_strides(x.sizes(), x.strides(), sizes, strides)) {
    return view_node(x, view_backward, sizes, strides, x.sizes());
  }
  // A copy is made even of a tensor whose only fault is a broadcast dimension.
  Recording record(x.context(), clone_backward, {&x});
  Tensor copy = record.finish(clone(x, contiguous_strides(x.sizes())));
  return view(std::move(copy), sizes);
}

Tensor to(Tensor x_in, DType dtype) {
  const Tensor x = std::move(x_in);
  if (x.dtype() == dtype) return x;
  Recording record(x.context(), cast_backward, {&x});
  if (record) record.node()->number[0] = static_cast<std::int64_t>(x.dtype());
  x.context().record_op(Op::cast, 0, x.bytes() + x.numel() * size_of(dtype));
  return record.finish(x.context().make_in_order_of(x, dtype));
}

Tensor cat(std::vector<Tensor> parts_in, int dim) {
  std::vector<Tensor> parts = std::move(parts_in);
  Context& context = parts[0].context();
  dim = wrap(dim, parts[0].dim());
  Recording record(context, cat_backward, std::span<const Tensor>(parts));
  Dims sizes = parts[0].sizes();
  sizes[dim] = 0;
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) {
    sizes[dim] += part.size(dim);
    dtype = promote(dtype, part.dtype());
  }
  if (record) {
    record.node()->number[0] = dim;
    record.node()->number[1] = parts[0].size(dim);
    record.node()->number[2] = parts.size() > 1 ? parts[1].size(dim) : 0;
  }
  context.record_op(Op::cat, 0, 2 * numel(sizes) * size_of(dtype));
  Tensor out = record.finish(context.make(sizes, dtype));
  // From the end, as Python takes a list apart; libraries of C++ differ.
  while (!parts.empty()) parts.pop_back();
  return out;
}

Tensor stack_last(std::vector<Tensor> parts_in) {
  std::vector<Tensor> parts = std::move(parts_in);
  Context& context = parts[0].context();
  Recording record(context, stack_last_backward, std::span<const Tensor>(parts));
  Dims sizes = parts[0].sizes();
  sizes.push_back(static_cast<std::int64_t>(parts.size()));
  context.record_op(Op::cat, 0, 2 * numel(sizes) * size_of(parts[0].dtype()));
  Tensor out = record.finish(context.make(sizes, parts[0].dtype()));
  while (!parts.empty()) parts.pop_back();  // as in cat
  return out;
}

Tensor pad_last(Tensor x_in, std::int64_t right) {
  const Tensor x = std::move(x_in);
  Dims sizes = x.sizes();
  sizes[-1] += right;
  return empty(x.context(), Op::pad, sizes, x.dtype());
}

}  // namespace ullage::tensor
