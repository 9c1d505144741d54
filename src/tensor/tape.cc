#include "tensor/tape.h"

#include <algorithm>

#include "tensor/offload.h"
#include "tensor/ops.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

class Engine {
 public:
  explicit Engine(Context& context) : context_(context) {}

  void run(const Tensor& root, Tensor gradient) {
    TensorImpl& impl = *root.impl();
    if (!impl.grad_fn) return;
    count_dependencies(impl.grad_fn.get());
    impl.grad_fn->inputs[impl.output].buffer = std::move(gradient);
    push(impl.grad_fn);
    while (!ready_.empty()) evaluate(pop());
  }

  // `second` is an inner result of the graph that leads to `root`: the gradient given for it waits there for the one
  // that comes from `root`.
  void run(const Tensor& root, Tensor gradient, const Tensor& second, Tensor second_gradient) {
    const TensorImpl& inner = *second.impl();
    inner.grad_fn->inputs[inner.output].buffer = std::move(second_gradient);
    run(root, std::move(gradient));
  }

 private:
  static bool runs_later(const Ref<Node>& a, const Ref<Node>& b) { return a->sequence < b->sequence; }

  void push(Ref<Node> node) {
    ready_.push_back(std::move(node));
    std::push_heap(ready_.begin(), ready_.end(), runs_later);
  }

  Ref<Node> pop() {
    std::pop_heap(ready_.begin(), ready_.end(), runs_later);
    Ref<Node> node = std::move(ready_.back());
    ready_.pop_back();
    return node;
  }

  // Only edges that can be reached from the root count; a node's counter is valid for this pass's epoch.
  void count_dependencies(Node* root) {
    const std::uint32_t epoch = ++context_.epoch;
    root->epoch = epoch;
    root->dependencies = 0;
    std::vector<Node*> stack{root};
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Edge& edge : node->edges) {
        Node* next = edge.node.get();
        if (next == nullptr) continue;
        if (next->epoch != epoch) {
          next->epoch = epoch;
          next->dependencies = 0;
          stack.push_back(next);
        }
        ++next->dependencies;
      }
    }
  }

  void evaluate(Ref<Node> node) {
    Restore<NameId> module(context_.module, node->module);
    Restore<std::int16_t> layer(context_.layer, node->layer);
    context_.begin_section(node->layer);
    if (context_.offload != nullptr) context_.offload->before_node(node->layer);
    Gradients out;
    out.resize(node->edges.size());
    {
      Gradients in;
      in.resize(node->inputs.size());
      bool any = false;
      for (std::size_t i = 0; i < node->inputs.size(); ++i) {
        in[i] = std::move(node->inputs[i].buffer);
        any |= static_cast<bool>(in[i]);
      }
      // A node that gives no gradient to an input leaves those behind it with nothing to do.
      if (any) {
        node->backward(*node, in, out);
        fit_to_receivers(*node, out);
        if (context_.offload != nullptr) context_.offload->after_node(node->layer);
      }
    }
    node->saved.clear();
    for (std::size_t i = 0; i < node->edges.size(); ++i) deliver(*node, node->edges[i], out[i]);
  }

  // A gradient of a broadcast operand is summed to the operand's shape, one of another type is cast.
  static void fit_to_receivers(Node& node, Gradients& out) {
    for (std::size_t i = 0; i < node.edges.size(); ++i) {
      if (!out[i] || !node.edges[i].node) continue;
      const GradientInput& expected = node.edges[i].node->inputs[node.edges[i].input];
      if (!(out[i].sizes() == expected.sizes)) out[i] = sum_to(std::move(out[i]), expected.sizes);
      if (out[i].dtype() != expected.dtype) out[i] = to(std::move(out[i]), expected.dtype);
    }
  }

  // What is added to another gradient stays in the list of the node's outputs until all are delivered.
  void deliver(const Node& from, Edge& edge, Tensor& gradient) {
    if (!edge.node) return;
    Node& receiver = *edge.node;
    if (gradient) add_to(receiver.inputs[edge.input].buffer, gradient);
    if (--receiver.dependencies > 0) return;
    if (from.leaves_at_once && receiver.leaf) evaluate(edge.node);
    else push(edge.node);
  }

  // A view made in backward keeps its base alive beside it, so it never counts as the only owner.
  static bool sole_owner(const Tensor& tensor) {
    return tensor.impl()->refs == 1 && !tensor.impl()->is_view && tensor.storage().refs == 1 &&
           is_dense(tensor.sizes(), tensor.strides());
  }

  void add_to(Tensor& buffer, Tensor& gradient) {
    if (!buffer) {
      buffer = std::move(gradient);
    } else if (!context_.policy().traced && sole_owner(buffer)) {
      add_in_place(buffer, gradient);
    } else {
      Tensor sum = add(buffer, gradient);
      buffer = std::move(sum);
    }
  }

  Context& context_;
  std::vector<Ref<Node>> ready_;
};

}  // namespace

void run_backward(Tensor root_in, Tensor gradient_in) {
  const Tensor root = std::move(root_in);
  Tensor gradient = std::move(gradient_in);
  Context& context = root.context();
  Restore<memory::Phase> phase(context.phase, memory::Phase::backward);
  NoGrad no_grad(context);
  if (!gradient) gradient = ones_like(root);
  Engine(context).run(root, gradient);  // the caller's gradient outlives the pass
  if (context.offload != nullptr) context.offload->end_of_backward();
}

void run_backward(const Tensor& root, const Tensor& gradient, const Tensor& second, const Tensor& second_gradient) {
  Context& context = root.context();
  Restore<memory::Phase> phase(context.phase, memory::Phase::backward);
  NoGrad no_grad(context);
  Engine(context).run(root, gradient, second, second_gradient);
}

namespace {

// Whether a gradient is laid out as its leaf is (utils::obeys_layout_contract): the stride of a dimension of one does
// not count, unless it is 0.
bool obeys_layout(const Tensor& gradient, const Tensor& leaf) {
  if (gradient.strides() == leaf.strides()) return true;
  for (int i = 0; i < leaf.dim(); ++i) {
    const std::int64_t stride = gradient.strides()[i];
    if (gradient.size(i) == 1 ? stride == 0 : stride != leaf.strides()[i]) return false;
  }
  return true;
}

}  // namespace

void accumulate_gradient(Node& node, Gradients& in, Gradients& /*out*/) {
  if (!in[0]) return;
  Tensor leaf(node.leaf.get());
  const Tensor present = leaf.grad();
  if (present) {
    add_in_place(present, in[0]);
    return;
  }
  const bool ours = in[0].impl()->refs == 1 && obeys_layout(in[0], leaf);
  Tensor gradient = ours ? detach(in[0]) : clone(in[0], leaf.strides());
  Storage& storage = gradient.storage();
  if (node.leaf->is_parameter) storage.context->retag(storage, memory::Component::gradients);
  leaf.set_grad(std::move(gradient));
  if (leaf.context().gradient_listener != nullptr && node.leaf->is_parameter) {
    leaf.context().gradient_listener->on_gradient(leaf);
  }
}

}  // namespace ullage::tensor
