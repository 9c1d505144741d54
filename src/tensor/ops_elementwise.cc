// Pointwise operators.
#include <algorithm>
#include <limits>

#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (!is_floating(a)) return b;
  if (!is_floating(b)) return a;
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  return DType::f32;  // fp32 with a half, or the two halves with each other
}

namespace {

// TensorIterator's order of dimensions, fastest first: pairs are compared operand by operand, the first operand whose
// strides differ decides (aten/src/ATen/TensorIterator.cpp, reorder_dimensions).
Dims result_strides(const Dims& sizes, const Dims& a, const Dims& b) {
  const int n = sizes.size();
  int order[kMaxDims];
  for (int i = 0; i < n; ++i) order[i] = n - 1 - i;
  const auto compare = [&](int x, int y) {
    for (const Dims* strides : {&a, &b}) {
      const std::int64_t sx = (*strides)[x];
      const std::int64_t sy = (*strides)[y];
      if (sx == 0 || sy == 0) continue;
      if (sx != sy) return sx < sy ? -1 : 1;
      if (sizes[x] > sizes[y]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < n; ++i) {
    int right = i;
    for (int left = i - 1; left >= 0; --left) {
      const int result = compare(order[left], order[right]);
      if (result > 0) {
        std::swap(order[left], order[right]);
        right = left;
      } else if (result < 0) {
        break;
      }
    }
  }
  Dims out = sizes;
  std::int64_t stride = 1;
  for (int i = 0; i < n; ++i) {
    out[order[i]] = stride;
    stride *= std::max<std::int64_t>(sizes[order[i]], 1);
  }
  return out;
}

// Two operands seen in the shape of their result.
struct Broadcast {
  Dims sizes;
  Dims a;  // strides, 0 where it is broadcast
  Dims b;
  bool row_major = true;  // in both, each dimension is slower than the next; those of stride 0 have no say
};

// Stride of an operand's dimension of `size` where the result's has `out` elements.
std::int64_t broadcast_stride(std::int64_t stride, std::int64_t size, std::int64_t out) {
  return size == 1 && out != 1 ? 0 : stride;
}

Broadcast broadcast_both(const Tensor& a, const Tensor& b) {
  const bool a_longer = a.dim() >= b.dim();
  const Tensor& longer = a_longer ? a : b;
  const Tensor& shorter = a_longer ? b : a;
  Broadcast out;
  out.sizes = out.a = out.b = longer.sizes();
  std::int64_t* joint = out.sizes.begin();
  std::int64_t* strides = (a_longer ? out.a : out.b).begin();
  std::int64_t* other = (a_longer ? out.b : out.a).begin();
  std::int64_t slower = std::numeric_limits<std::int64_t>::max();
  std::int64_t other_slower = slower;
  const auto follow = [&](std::int64_t stride, std::int64_t& before) {
    if (stride == 0) return;
    if (stride >= before) out.row_major = false;
    before = stride;
  };
  const int shift = longer.dim() - shorter.dim();
  for (int i = 0; i < longer.dim(); ++i) {
    const std::int64_t size = longer.sizes().begin()[i];
    const std::int64_t other_size = i < shift ? 1 : shorter.sizes().begin()[i - shift];
    if (size == 1) joint[i] = other_size;
    strides[i] = broadcast_stride(longer.strides().begin()[i], size, joint[i]);
    other[i] = i < shift ? 0 : broadcast_stride(shorter.strides().begin()[i - shift], other_size, joint[i]);
    follow(strides[i], slower);
    follow(other[i], other_slower);
  }
  return out;
}

using Unary = Tensor (*)(Tensor);

Tensor unary(Op op, const Tensor& x, BackwardFunction backward, bool saves_input, bool saves_result) {
  Recording record(x.context(), backward, {&x});
  if (saves_input) save_input(record.node(), x);
  Tensor out = elementwise(op, x, x.dtype());
  if (saves_result) save_output(record.node(), out);
  return record.finish(std::move(out));
}

void pass_backward(Node& /*node*/, Gradients& in, Gradients& out) {
  for (std::size_t i = 0; i < 2; ++i) {
    out[i] = in[0];
  }
}

void pass_one_backward(Node& /*node*/, Gradients& in, Gradients& out) { out[0] = in[0]; }

void sub_backward(Node& node, Gradients& in, Gradients& out) {
  if (node.wants(1)) out[1] = neg(in[0]);
  out[0] = in[0];
}

void mul_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor b = node.wants(0) ? unpack(node, 0) : Tensor{};
  const Tensor a = node.wants(1) ? unpack(node, node.wants(0) ? 1 : 0) : Tensor{};
  if (node.wants(1)) out[1] = mul(in[0], a);
  if (node.wants(0)) out[0] = mul(in[0], b);
}

void div_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor b = unpack(node, 0);
  out[0] = elementwise(Op::div, in[0], b, in[0].dtype());
}

void mul_scalar_backward(Node& /*node*/, Gradients& in, Gradients& out) { out[0] = mul_scalar(in[0]); }
void div_scalar_backward(Node& /*node*/, Gradients& in, Gradients& out) { out[0] = div_scalar(in[0]); }
void neg_backward(Node& /*node*/, Gradients& in, Gradients& out) { out[0] = neg(in[0]); }

// grad * (exponent * x^(exponent - 1))
void pow_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor power = pow_scalar(x);
  const Tensor scaled = mul_scalar(power);
  out[0] = mul(in[0], scaled);
}

// -0.5 * grad * result^3
void rsqrt_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor result = unpack(node, 0);
  const Tensor power = pow_scalar(result);
  const Tensor scaled = mul_scalar(in[0]);
  out[0] = mul(scaled, power);
}

// What is clamped in place is a view of the linear layer's product, so the gradient is that of the whole product with
// the view's put in (CopySlices): a copy of the gradient for each, and where(x beyond the limits, 0, gradient).
void clamp_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  out[0] = empty(context, Op::empty, in[0].sizes(), in[0].dtype());
  const Tensor part = clone(in[0], contiguous_strides(in[0].sizes()));
  const Tensor x = unpack(node, 0);
  const Tensor zero = empty(context, Op::zeros, {}, part.dtype());
  const Tensor above = elementwise(Op::compare, x, DType::boolean);
  const Tensor below = elementwise(Op::compare, x, DType::boolean);
  const Tensor kept = elementwise(Op::where, part, part.dtype());
}

// where(low <= x and x <= high, grad, 0); the conjunction is made in place
void clamp_between_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor zero = empty(*node.context, Op::zeros, {}, in[0].dtype());
  const Tensor high_enough = elementwise(Op::compare, x, DType::boolean);
  const Tensor low_enough = elementwise(Op::compare, x, DType::boolean);
  out[0] = elementwise(Op::where, high_enough, in[0], in[0].dtype());
}

// The same by tensors: where x is a bound itself, it gets a part of the gradient.
void clamp_by_tensors_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor low = unpack(node, 1);
  const Tensor high = unpack(node, 2);
  const auto compare = [&](Op op) { return elementwise(op, x, DType::boolean); };
  const Tensor in_order = empty(*node.context, Op::compare, {}, DType::boolean);
  Tensor is_bound;
  {
    const Tensor is_low = compare(Op::compare);
    const Tensor is_high = compare(Op::compare);
    const Tensor is_either = compare(Op::logical_and);
    is_bound = compare(Op::logical_and);
  }
  Tensor is_outside;
  {
    const Tensor is_below = compare(Op::compare);
    const Tensor is_above = compare(Op::compare);
    is_outside = compare(Op::logical_and);
  }
  const Tensor part = elementwise(Op::div, in[0], in[0].dtype());
  const Tensor shared = elementwise(Op::where, is_bound, part, in[0].dtype());
  out[0] = elementwise(Op::masked_fill, shared, is_outside, in[0].dtype());
}

// where(x <= high, grad, 0)
void clamp_above_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor zero = empty(*node.context, Op::zeros, {}, in[0].dtype());
  const Tensor low_enough = elementwise(Op::compare, x, DType::boolean);
  out[0] = elementwise(Op::where, low_enough, in[0], in[0].dtype());
}

// One kernel that reads the gradient and what was saved. Which of them it names first decides the memory order of the
// result: the gradient, but for thresholds.
template <Op kOp>
void kernel_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor saved = unpack(node, 0);
  if constexpr (kOp == Op::threshold_backward) {
    out[0] = elementwise(kOp, saved, in[0], in[0].dtype());
  } else {
    out[0] = elementwise(kOp, in[0], saved, in[0].dtype());
  }
}

// CUDA's kernel gives a contiguous tensor (suggest_memory_format), the CPU's product keeps the gradient's order.
void dropout_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor mask = unpack(node, 0);
  if (node.context->policy().cuda) {
    node.context->record_op(Op::dropout_backward, in[0].numel(), 2 * in[0].bytes() + mask.bytes());
    out[0] = node.context->make(in[0].sizes(), in[0].dtype());
    return;
  }
  out[0] = elementwise(Op::dropout_backward, in[0], mask, in[0].dtype());
}

Tensor binary(Op op, const Tensor& a, const Tensor& b, BackwardFunction backward) {
  Recording record(a.context(), backward, {&a, &b});
  return record.finish(elementwise(op, a, b, promote(a.dtype(), b.dtype())));
}

// The tensor itself moves behind the new node.
void finish_in_place(Recording& record, const Tensor& x) {
  Tensor same(x);
  record.finish(std::move(same));
}

}  // namespace

Tensor elementwise(Op op, const Tensor& a, DType dtype) {
  Context& context = a.context();
  const std::int64_t n = a.numel();
  context.record_op(op, n, n * (size_of(a.dtype()) + size_of(dtype)));
  return context.make_in_order_of(a, dtype);
}

Tensor elementwise(Op op, const Tensor& a, const Tensor& b, DType dtype) {
  Context& context = a.context();
  if (a.sizes() == b.sizes() && a.strides() == b.strides() && (a.contiguous() || is_dense(a.sizes(), a.strides()))) {
    const std::int64_t n = a.numel();
    context.record_op(op, n, n * (size_of(a.dtype()) + size_of(b.dtype()) + size_of(dtype)));
    return context.make_like(a, dtype);
  }
  const Broadcast both = broadcast_both(a, b);
  const std::int64_t n = numel(both.sizes);
  context.record_op(op, n, a.bytes() + b.bytes() + n * size_of(dtype));
  if (both.row_major) return context.make(both.sizes, dtype);  // no pair changes places
  return context.make(both.sizes, result_strides(both.sizes, both.a, both.b), dtype);
}

Tensor add(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  return binary(Op::add, a, b, pass_backward);
}

Tensor sub(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  return binary(Op::sub, a, b, sub_backward);
}

Tensor mul(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  Recording record(a.context(), mul_backward, {&a, &b});
  if (record.wants(0)) save_input(record.node(), b);
  if (record.wants(1)) save_input(record.node(), a);
  return record.finish(elementwise(Op::mul, a, b, promote(a.dtype(), b.dtype())));
}

Tensor div(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  assert(!b.requires_grad());
  Recording record(a.context(), div_backward, {&a, &b});
  save_input(record.node(), b);
  return record.finish(elementwise(Op::div, a, b, promote(a.dtype(), b.dtype())));
}

void add_in_place(const Tensor& a, const Tensor& b) {
  a.context().record_op(Op::add_, a.numel(), 2 * a.bytes() + b.bytes());
}

void iadd(const Tensor& x, Tensor y_in) {
  const Tensor y = std::move(y_in);
  Recording record(x.context(), pass_backward, {&x, &y});
  add_in_place(x, y);
  finish_in_place(record, x);
}

Tensor add_scalar(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::add, x, pass_one_backward, false, false);
}

Tensor mul_scalar(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::mul, x, mul_scalar_backward, false, false);
}

Tensor div_scalar(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::div, x, div_scalar_backward, false, false);
}

Tensor neg(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::neg, x, neg_backward, false, false);
}

Tensor pow_scalar(Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (x.context().autocasts_on_cuda()) return in_fp32(x.context(), pow_scalar, x);
  return unary(Op::pow, x, pow_backward, true, false);
}

Tensor rsqrt(Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (x.context().autocasts_on_cuda()) return in_fp32(x.context(), rsqrt, x);
  return unary(Op::rsqrt, x, rsqrt_backward, false, true);
}

// Used on noise without gradient only.
Tensor log(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  if (context.autocasts_on_cuda()) return in_fp32(context, log, x);
  return elementwise(Op::log, x, x.dtype());
}

// Used on tables without gradient only.
Tensor cos(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return elementwise(Op::cos, x, x.dtype());
}

Tensor sin(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return elementwise(Op::sin, x, x.dtype());
}

Tensor tanh(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::tanh, x, kernel_backward<Op::tanh_backward>, false, true);
}

Tensor sigmoid(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::sigmoid, x, kernel_backward<Op::sigmoid_backward>, false, true);
}

Tensor silu(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::silu, x, kernel_backward<Op::silu_backward>, true, false);
}

Tensor gelu(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::gelu, x, kernel_backward<Op::gelu_backward>, true, false);
}

Tensor relu(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::relu, x, kernel_backward<Op::threshold_backward>, false, true);
}

Tensor clamp(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::clamp, x, clamp_between_backward, true, false);
}

Tensor clamp(Tensor x_in, Tensor low_in, Tensor high_in) {
  const Tensor x = std::move(x_in);
  const Tensor low = std::move(low_in);
  const Tensor high = std::move(high_in);
  Recording record(x.context(), clamp_by_tensors_backward, {&x});
  for (const Tensor* saved : {&x, &low, &high}) save_input(record.node(), *saved);
  return record.finish(elementwise(Op::clamp, x, x.dtype()));
}

Tensor clamp_above(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return unary(Op::clamp, x, clamp_above_backward, true, false);
}

void relu_in_place(const Tensor& x) {
  Recording record(x.context(), kernel_backward<Op::threshold_backward>, {&x});
  x.context().record_op(Op::relu_, x.numel(), 2 * x.bytes());
  save_output(record.node(), x);
  finish_in_place(record, x);
}

namespace {

// Backward needs the input, so a graph keeps a copy of it.
void limit_in_place(Op op, BackwardFunction backward, const Tensor& x) {
  Recording record(x.context(), backward, {&x});
  if (record) {
    const Tensor before = clone(x, strides_like(x.sizes(), x.strides()));
    save_input(record.node(), before);
  }
  x.context().record_op(op, x.numel(), 2 * x.bytes());
  finish_in_place(record, x);
}

}  // namespace

void hardtanh_in_place(const Tensor& x) { limit_in_place(Op::hardtanh_, kernel_backward<Op::hardtanh_backward>, x); }

void clamp_view_in_place(const Tensor& x) { limit_in_place(Op::clamp_, clamp_backward, x); }

void mul_scalar_in_place(const Tensor& x) {
  Recording record(x.context(), mul_scalar_backward, {&x});
  x.context().record_op(Op::mul, x.numel(), 2 * x.bytes());
  finish_in_place(record, x);
}

void div_scalar_in_place(const Tensor& x) {
  Recording record(x.context(), div_scalar_backward, {&x});
  x.context().record_op(Op::div, x.numel(), 2 * x.bytes());
  finish_in_place(record, x);
}

Tensor dropout(Tensor x_in, double p) {
  const Tensor x = std::move(x_in);
  if (p == 0) return x;
  Context& context = x.context();
  Recording record(context, dropout_backward, {&x});
  // CUDA's fused kernel keeps a Boolean mask, the CPU's product one in the tensor's type.
  Tensor out;
  if (context.policy().cuda) {
    out = elementwise(Op::dropout, x, x.dtype());
    const Tensor mask = context.make(out.sizes(), out.strides(), DType::boolean);
    save_output(record.node(), mask);
  } else {
    const Tensor mask = elementwise(Op::dropout, x, x.dtype());
    save_input(record.node(), mask);
    out = elementwise(Op::mul, x, x.dtype());
  }
  return record.finish(std::move(out));
}

}  // namespace ullage::tensor
