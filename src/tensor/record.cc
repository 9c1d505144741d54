#include "tensor/record.h"

#include <limits>

#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

void expect_gradient(Node& node, const TensorImpl& of) {
  GradientInput& expected = node.inputs.add();
  expected.sizes = of.sizes;
  expected.dtype = of.dtype;
}

// A leaf has one accumulator at a time, made when the leaf is first used and gone with the last graph that leads to it.
Ref<Node> accumulator_of(TensorImpl* leaf) {
  if (leaf->accumulator != nullptr) return Ref<Node>(leaf->accumulator);
  Context& context = *leaf->storage->context;
  Ref<Node> node(context.make_node());
  node->context = &context;
  node->backward = accumulate_gradient;
  node->sequence = std::numeric_limits<std::uint64_t>::max();  // leaves accumulate at once
  node->layer = context.layer;
  node->module = context.module;
  node->leaf = Ref<TensorImpl>(leaf);
  expect_gradient(*node, *leaf);
  leaf->accumulator = node.get();
  return node;
}

Edge edge_to(const Tensor& input) {
  TensorImpl* impl = input.impl();
  if (impl == nullptr) return {};
  if (impl->grad_fn) return {impl->grad_fn, impl->output};
  if (impl->leaf_requires_grad) return {accumulator_of(impl), 0};
  return {};
}

const Tensor& tensor_of(const Tensor* input) { return *input; }
const Tensor& tensor_of(const Tensor& input) { return input; }

template <class Inputs>
Ref<Node> node_for(Context& context, BackwardFunction backward, const Inputs& inputs) {
  std::uint64_t wants = 0;
  unsigned bit = 0;  // an operator with more than 64 inputs treats them all alike and does not ask
  for (const auto& input : inputs) wants |= std::uint64_t{tensor_of(input).requires_grad()} << (bit++ & 63);
  if (wants == 0) return {};
  if (context.ghost_graph) {
    Ref<Node> ghost(context.borrow_ghost());
    ghost->ghost_wants = wants;
    return ghost;
  }
  Ref<Node> node(context.make_node());
  node->context = &context;
  node->backward = backward;
  node->sequence = context.sequence++;
  node->module = context.module;
  node->layer = context.layer;
  for (const auto& input : inputs) node->edges.add() = edge_to(tensor_of(input));
  return node;
}

}  // namespace

Ref<Node> Recording::start(Context& context, BackwardFunction backward, std::initializer_list<const Tensor*> inputs) {
  return node_for(context, backward, inputs);
}

Ref<Node> Recording::start(Context& context, BackwardFunction backward, std::span<const Tensor> inputs) {
  return node_for(context, backward, inputs);
}

void Recording::add_output(TensorImpl& output) {
  output.tracked = true;
  if (node_->ghost) return;
  output.output = static_cast<std::uint16_t>(node_->inputs.size());
  output.grad_fn = node_;
  expect_gradient(*node_, output);
}

Tensor detach(const Tensor& tensor) {
  Tensor out = tensor.context().alias(tensor);
  out.impl()->is_view = tensor.impl()->is_view;  // the same tensor under another name, not a view of it
  return out;
}

}  // namespace ullage::tensor
