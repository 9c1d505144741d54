#include "tensor/record.h"

#include <limits>

#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

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
  node->inputs.push_back({leaf->sizes, leaf->dtype, {}});
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

}  // namespace

void Recording::start(Context& context, BackwardFunction backward) {
  if (context.ghost_graph) {
    node_ = Ref<Node>(context.borrow_ghost());
    return;
  }
  node_ = Ref<Node>(context.make_node());
  node_->context = &context;
  node_->backward = backward;
  node_->sequence = context.sequence++;
  node_->module = context.module;
  node_->layer = context.layer;
}

void Recording::add_edge(const Tensor& input) {
  if (!node_->ghost) {
    node_->edges.push_back(edge_to(input));
  } else if (node_->ghost_edges < 64) {  // an operator with more inputs treats them all alike and does not ask
    node_->ghost_wants |= std::uint64_t{input.requires_grad()} << node_->ghost_edges++;
  }
}

void Recording::return_ghost() {
  node_->ghost_edges = 0;
  node_->ghost_wants = 0;
  node_->context->return_ghost();
}

Recording::Recording(Context& context, BackwardFunction backward, std::initializer_list<const Tensor*> inputs) {
  if (!context.grad_enabled) return;
  bool any = false;
  for (const Tensor* input : inputs) any = any || input->requires_grad();
  if (!any) return;
  start(context, backward);
  for (const Tensor* input : inputs) add_edge(*input);
}

Recording::Recording(Context& context, BackwardFunction backward, std::span<const Tensor> inputs) {
  if (!context.grad_enabled) return;
  bool any = false;
  for (const Tensor& input : inputs) any = any || input.requires_grad();
  if (!any) return;
  start(context, backward);
  for (const Tensor& input : inputs) add_edge(input);
}

Tensor Recording::finish(Tensor output_in) {
  Tensor output = std::move(output_in);
  if (!node_) return output;
  TensorImpl& impl = *output.impl();
  impl.tracked = true;
  if (node_->ghost) return output;
  impl.output = static_cast<std::uint16_t>(node_->inputs.size());
  impl.grad_fn = node_;
  node_->inputs.push_back({impl.sizes, impl.dtype, {}});
  return output;
}

Tensor detach(const Tensor& tensor) {
  Tensor out = tensor.context().alias(tensor);
  out.impl()->is_view = tensor.impl()->is_view;  // the same tensor under another name, not a view of it
  return out;
}

}  // namespace ullage::tensor
