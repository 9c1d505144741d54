// gelu's tanh approximation as BLOOM writes it: forward and gradient of elementary operators, of which the graph sees
// one function that saves its input (transformers: models/bloom/modeling_bloom.py, GeLUFunction).
#include "tensor/ops.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

// tanh(0.797 x (1 + 0.0447 x x))
Tensor inner_tanh(const Tensor& x) {
  Tensor scaled = mul_scalar(x);
  Tensor square = mul_scalar(x);
  square = mul(square, x);
  square = add_scalar(std::move(square));
  scaled = mul(std::move(scaled), std::move(square));
  return tanh(std::move(scaled));
}

// 0.5 x ((1 - t t) (0.797 + 0.107 x x)) + 0.5 (1 + t), times the gradient
void gelu_by_hand_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor t = inner_tanh(x);
  Tensor first = mul_scalar(x);
  Tensor slope = mul(t, t);
  slope = add_scalar(std::move(slope));
  Tensor square = mul_scalar(x);
  square = mul(std::move(square), x);
  square = add_scalar(std::move(square));
  slope = mul(std::move(slope), std::move(square));
  first = mul(std::move(first), std::move(slope));
  Tensor second = add_scalar(t);
  second = mul_scalar(std::move(second));
  const Tensor sum = add(std::move(first), std::move(second));
  out[0] = mul(sum, in[0]);
}

}  // namespace

Tensor gelu_by_hand(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), gelu_by_hand_backward, {&x});
  Tensor out;
  {
    const NoGrad no_grad(x.context());
    Tensor half = mul_scalar(x);
    Tensor inner = inner_tanh(x);
    inner = add_scalar(std::move(inner));
    out = mul(std::move(half), std::move(inner));
  }
  save_input(record.node(), x);
  return record.finish(std::move(out));
}

}  // namespace ullage::tensor
