// Complex numbers, as far as rotary embeddings that turn by a complex product need them.
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

Tensor alias_as(const Tensor& x, const Dims& sizes, const Dims& strides, DType dtype) {
  Tensor out = x.context().alias(x, sizes, strides);
  out.impl()->dtype = dtype;
  return out;
}

Tensor see_as_complex(const Tensor& x) {
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  sizes.erase(sizes.size() - 1);
  strides.erase(strides.size() - 1);
  for (int i = 0; i < strides.size(); ++i) strides[i] /= 2;
  return alias_as(x, sizes, strides, DType::c64);
}

Tensor see_as_real(const Tensor& x) {
  Dims sizes = x.sizes();
  Dims strides = x.strides();
  for (int i = 0; i < strides.size(); ++i) strides[i] *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return alias_as(x, sizes, strides, DType::f32);
}

void view_as_complex_backward(Node& /*node*/, Gradients& in, Gradients& out) {
  const Tensor gradient = contiguous(in[0]);
  out[0] = see_as_real(gradient);
}

void view_as_real_backward(Node& /*node*/, Gradients& in, Gradients& out) {
  const Tensor gradient = contiguous(in[0]);
  out[0] = see_as_complex(gradient);
}

// Slot: the factor. The product with its conjugate writes the conjugate out first.
void complex_mul_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor factor = unpack(node, 0);
  const Tensor conjugate = clone(factor, strides_like(factor.sizes(), factor.strides()));
  out[0] = elementwise(Op::mul, in[0], conjugate, DType::c64);
}

}  // namespace

Tensor view_as_complex(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), view_as_complex_backward, {&x});
  return record.finish(see_as_complex(x));
}

Tensor view_as_real(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), view_as_real_backward, {&x});
  return record.finish(see_as_real(x));
}

Tensor complex_mul(Tensor x_in, Tensor factor_in) {
  const Tensor x = std::move(x_in);
  const Tensor factor = std::move(factor_in);
  Recording record(x.context(), complex_mul_backward, {&x});
  save_input(record.node(), factor);
  return record.finish(elementwise(Op::mul, x, factor, DType::c64));
}

}  // namespace ullage::tensor
