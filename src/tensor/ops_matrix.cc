// Matrix products.
#include <algorithm>

#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

// Bare kernels: [n, k] x [k, m] and [b, n, k] x [b, k, m], result contiguous.
Tensor mm(Context& context, Op op, const Dims& sizes, std::int64_t inner, DType dtype, std::int64_t read_bytes) {
  const std::int64_t n = numel(sizes);
  context.record_op(op, 2 * n * inner, read_bytes + n * size_of(dtype));
  return context.make(sizes, dtype);
}

std::int64_t rows_of(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

// Whether [..., n] can be folded to [rows, n] without a copy.
Tensor fold(Tensor x_in) {
  Tensor x = std::move(x_in);
  if (x.dim() == 2) return x;
  const std::int64_t rows = rows_of(x);
  const std::int64_t last = x.size(-1);
  return reshape(std::move(x), {rows, last});
}

Dims with_last(Dims sizes, std::int64_t last) {
  sizes[-1] = last;
  return sizes;
}

// x [rows, in] times weight [in, out] (a transposed view for linear layers).
// Slots: weight (if the input wants a gradient), input (if the weight trains); with a bias the other way round (by the
// names of mm's and addmm's arguments). Edges: input, weight, bias.
// number[0]: output features; number[2]: input features.
void product_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const bool has_bias = node.edges.size() == 3;
  const std::size_t weight_slot = has_bias && node.wants(1) ? 1 : 0;
  const std::size_t input_slot = !has_bias && node.wants(0) ? 1 : 0;
  const Tensor x = node.wants(1) ? unpack(node, input_slot) : Tensor{};
  const Tensor weight = node.wants(0) ? unpack(node, weight_slot) : Tensor{};
  const Tensor gradient = in[0];
  const std::int64_t rows = gradient.size(0);
  const std::int64_t features_out = node.number[0];
  const std::int64_t features_in = node.number[2];
  const auto weight_gradient = [&] {
    // Written in the weight's own memory order.
    Tensor made =
        mm(context, Op::mm, {features_out, features_in}, rows, gradient.dtype(), gradient.bytes() + x.bytes());
    return node.number[1] != 0 ? context.alias(made, {features_in, features_out}, {features_out, 1})
                               : transpose(std::move(made), 0, 1);
  };
  const auto input_gradient = [&] {
    return mm(context, Op::mm, {rows, features_in}, features_out, gradient.dtype(), gradient.bytes() + weight.bytes());
  };
  if (has_bias) {
    if (node.wants(0)) out[0] = input_gradient();
    if (node.wants(1)) out[1] = weight_gradient();
    if (node.wants(2)) out[2] = gradient;  // summed over the rows when it is fitted to the bias
  } else {
    if (node.wants(1)) out[1] = weight_gradient();
    if (node.wants(0)) out[0] = input_gradient();
  }
}

// As torch tells in which order a weight's gradient is written (mm_mat2_backward).
bool column_major(const Tensor& weight) { return weight.strides()[0] == 1 && weight.strides()[1] == weight.size(0); }

// [rows, in] x weight -> [rows, out]
Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Context& context = x.context();
  const std::int64_t features_out = weight.size(1);
  Recording record = bias ? Recording(context, product_backward, {&x, &weight, &bias})
                          : Recording(context, product_backward, {&x, &weight});
  if (record) {
    record.node()->number[0] = features_out;
    record.node()->number[1] = column_major(weight) ? 0 : 1;
    record.node()->number[2] = x.size(1);
    if (bias && record.wants(1)) save_input(record.node(), x);
    if (record.wants(0)) save_input(record.node(), weight);
    if (!bias && record.wants(1)) save_input(record.node(), x);
  }
  return record.finish(mm(context, bias ? Op::addmm : Op::mm, {x.size(0), features_out}, x.size(1), x.dtype(),
                          x.bytes() + weight.bytes()));
}

Tensor addmm(Tensor bias_in, Tensor x_in, Tensor weight_in) {
  const Tensor bias = std::move(bias_in);
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  if (x.context().autocast.enabled) return in_low_precision(x.context(), addmm, bias, x, weight);
  return product(x, weight, bias);
}

Tensor unfold(Tensor out, const Dims& sizes) {
  if (sizes.size() == 2) return out;
  const std::int64_t features_out = out.size(-1);
  return view(std::move(out), with_last(sizes, features_out));
}

// What product_backward and the backward functions of the three views around it do, in their order.
// Slots: as product_backward's. Edges: see linear_in_one.
void linear_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const bool has_bias = node.edges.size() == 3;
  const std::size_t to_input = has_bias ? 2 : 0;
  constexpr std::size_t kToWeight = 1;
  const bool wants_weight = node.wants(kToWeight);
  const bool wants_input = node.wants(to_input);
  const Tensor gradient = fold(std::move(in[0]));
  const std::int64_t rows = gradient.size(0);
  const Tensor x = wants_weight ? unpack(node, !has_bias && wants_input ? 1 : 0) : Tensor{};
  const Tensor weight = wants_input ? unpack(node, has_bias && wants_weight ? 1 : 0) : Tensor{};
  const std::int64_t features_out = node.number[0];
  const std::int64_t features_in = node.number[1];
  const auto weight_gradient = [&] {
    out[kToWeight] =
        mm(context, Op::mm, {features_out, features_in}, rows, gradient.dtype(), gradient.bytes() + x.bytes());
    out[kToWeight].impl()->is_view = true;  // PyTorch makes it transposed and turns it
  };
  const auto input_gradient = [&] {
    out[to_input] = mm(context, Op::mm, node.dims, features_out, gradient.dtype(), gradient.bytes() + weight.bytes());
    out[to_input].impl()->is_view = node.dims.size() != 2;
  };
  if (has_bias) {
    if (wants_input) input_gradient();
    if (wants_weight) weight_gradient();
    if (node.wants(0)) out[0] = gradient;  // summed over the rows when it is fitted to the bias
  } else {
    if (wants_weight) weight_gradient();
    if (wants_input) input_gradient();
  }
}

// Whether all views around the product are views of whole matrices, so that nothing is copied on the way. Without a
// view of the input its gradient would leave before those of a weight beside a bias.
bool views_are_plain(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return x.dim() >= (bias ? 3 : 2) && x.numel() > 0 && x.contiguous() && weight.size(0) > 1 && weight.size(1) > 1 &&
         weight.contiguous();
}

// PyTorch records a node for each view around the product. They allocate nothing and run one after the other, so one
// node does for all; its edges stand in the order in which gradients leave the last of them: the bias at once, the
// weight before the input with a bias and after it without.
Tensor linear_in_one(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Context& context = x.context();
  const std::int64_t features_out = weight.size(0);
  const std::int64_t features_in = weight.size(1);
  Recording record = bias ? Recording(context, linear_backward, {&bias, &weight, &x})
                          : Recording(context, linear_backward, {&x, &weight});
  if (record) {
    Node& node = *record.node();
    node.number[0] = features_out;
    node.number[1] = features_in;
    node.dims = x.sizes();
    node.leaves_at_once = true;
    if (bias && node.wants(1)) save_input(&node, x);
    if (node.wants(bias ? 2 : 0)) save_input(&node, weight);
    if (!bias && node.wants(1)) save_input(&node, x);
  }
  Tensor out = mm(context, bias ? Op::addmm : Op::mm, with_last(x.sizes(), features_out), features_in, x.dtype(),
                  x.bytes() + weight.bytes());
  out.impl()->is_view = x.dim() != 2;
  return record.finish(std::move(out));
}

void bmm_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor a = node.wants(1) ? unpack(node, node.wants(0) ? 1 : 0) : Tensor{};
  const Tensor b = node.wants(0) ? unpack(node, 0) : Tensor{};
  const Tensor& gradient = in[0];
  const std::int64_t batch = gradient.size(0);
  const std::int64_t n = gradient.size(1);
  const std::int64_t m = gradient.size(2);
  const std::int64_t k = node.number[0];
  if (node.wants(1)) {
    out[1] = mm(context, Op::bmm, {batch, k, m}, n, gradient.dtype(), a.bytes() + gradient.bytes());
  }
  if (node.wants(0)) {
    out[0] = mm(context, Op::bmm, {batch, n, k}, m, gradient.dtype(), b.bytes() + gradient.bytes());
  }
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  Recording record(a.context(), bmm_backward, {&a, &b});
  if (record) record.node()->number[0] = a.size(2);
  if (record.wants(0)) save_input(record.node(), b);
  if (record.wants(1)) save_input(record.node(), a);
  return record.finish(
      mm(a.context(), Op::bmm, {a.size(0), a.size(1), b.size(2)}, a.size(2), a.dtype(), a.bytes() + b.bytes()));
}

// The leading sizes of `x` expanded to those of `sizes`.
Tensor expand_batch(Tensor x, Dims sizes) {
  sizes[-2] = x.size(-2);
  sizes[-1] = x.size(-1);
  return x.sizes() == sizes ? x : expand(std::move(x), sizes);
}

// alpha * (gradient of a plain product): scaling makes a tensor of its own.
void baddbmm_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor a = node.wants(2) ? unpack(node, 0) : Tensor{};
  const Tensor b = node.wants(1) ? unpack(node, node.wants(2) ? 1 : 0) : Tensor{};
  const Tensor& gradient = in[0];
  const std::int64_t batch = gradient.size(0);
  if (node.wants(1)) {
    Tensor product = mm(context, Op::bmm, {batch, gradient.size(1), node.number[0]}, gradient.size(2), gradient.dtype(),
                        b.bytes() + gradient.bytes());
    out[1] = mul_scalar(std::move(product));
  }
  if (node.wants(2)) {
    Tensor product = mm(context, Op::bmm, {batch, node.number[0], gradient.size(2)}, gradient.size(1), gradient.dtype(),
                        a.bytes() + gradient.bytes());
    out[2] = mul_scalar(std::move(product));
  }
}

// Whether [..., n] can be seen as [rows, n] (should_fold in ATen/native/LinearAlgebra.cpp).
bool folds(const Tensor& x) {
  Dims strides;
  return x.numel() == 0 || view_strides(x.sizes(), x.strides(), {rows_of(x), x.size(-1)}, strides);
}

// A frozen matrix and what cannot be folded without a copy: batch by batch.
Tensor product_by_batch(const Tensor& x, const Tensor& weight) {
  const Tensor expanded = expand(weight, {x.size(0), weight.size(0), weight.size(1)});
  return bmm(x, expanded);
}

bool goes_by_batch(const Tensor& x, const Tensor& weight) {
  return x.dim() == 3 && !weight.requires_grad() && !folds(x);
}

// What torch makes of an input that it cannot fold for nothing: a product, to which the bias is added; in place but for
// a tracer's tensors (native/Linear.cpp).
Tensor linear_apart(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor turned = transpose(weight, 0, 1);
  Tensor product = matmul(x, std::move(turned));
  if (x.context().policy().traced) return add(std::move(product), bias);
  iadd(product, bias);
  return product;
}

}  // namespace

Tensor linear(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  if (x.context().autocast.enabled) return in_low_precision(x.context(), linear, x, weight, bias);
  // Who listens to gradients hears of the weight's only after its view's node, when those of the product are delivered.
  const bool listened_to = x.context().gradient_listener != nullptr;
  if (!listened_to && views_are_plain(x, weight, bias)) return linear_in_one(x, weight, bias);
  if (bias && x.dim() == 3 && !x.contiguous()) return linear_apart(x, weight, bias);
  if (goes_by_batch(x, weight)) {
    Tensor turned = transpose(weight, 0, 1);
    return product_by_batch(x, turned);
  }
  // Creation numbers decide when the weight's gradient is accumulated: the transposed view comes before the folding of
  // the input without a bias, behind it with one.
  Tensor turned;
  if (!bias) turned = transpose(weight, 0, 1);
  const Tensor folded = fold(x);
  if (bias) turned = transpose(weight, 0, 1);
  return unfold(product(folded, turned, bias), x.sizes());
}

Tensor conv1d_addmm(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  const Tensor folded = fold(x);
  return unfold(addmm(bias, folded, weight), x.sizes());
}

Tensor matmul(Tensor a_in, Tensor b_in) {
  Tensor a = std::move(a_in);
  Tensor b = std::move(b_in);
  if (a.context().autocast.enabled) return in_low_precision(a.context(), matmul, a, b);
  if (b.dim() == 2) {
    if (goes_by_batch(a, b)) return product_by_batch(a, b);
    const Tensor folded = fold(a);
    return unfold(product(folded, b, {}), a.sizes());
  }
  Dims sizes = a.sizes();
  for (int i = 0; i + 2 < sizes.size(); ++i) sizes[i] = std::max(sizes[i], b.size(i));
  sizes[-1] = b.size(-1);
  std::int64_t batch = 1;
  for (int i = 0; i + 2 < a.dim(); ++i) batch *= sizes[i];
  a = expand_batch(std::move(a), sizes);
  b = expand_batch(std::move(b), sizes);
  const Tensor folded_a = reshape(a, {batch, a.size(-2), a.size(-1)});
  const Tensor folded_b = reshape(b, {batch, b.size(-2), b.size(-1)});
  Tensor out = bmm(folded_a, folded_b);
  return view(std::move(out), sizes);
}

Tensor baddbmm(Tensor out_in, Tensor a_in, Tensor b_in) {
  const Tensor out = std::move(out_in);
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  if (a.context().autocast.enabled) return in_low_precision(a.context(), baddbmm, out, a, b);
  Recording record(a.context(), baddbmm_backward, {&out, &a, &b});
  if (record) record.node()->number[0] = a.size(2);
  if (record.wants(2)) save_input(record.node(), a);
  if (record.wants(1)) save_input(record.node(), b);
  return record.finish(
      mm(a.context(), Op::baddbmm, {a.size(0), a.size(1), b.size(2)}, a.size(2), a.dtype(), a.bytes() + b.bytes()));
}

}  // namespace ullage::tensor
