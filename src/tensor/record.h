// How an operator writes itself into the autograd graph.
//
//   Recording record(context, mul_backward, {&a, &b});   // creation number taken here, before anything is allocated
//   if (record) save_input(record.node(), a);            // inputs are captured before the operator allocates,
//   Tensor out = ...;                                    // outputs after
//   return record.finish(std::move(out));
#pragma once

#include <initializer_list>
#include <span>

#include "tensor/context.h"

namespace ullage::tensor {

class Recording {
 public:
  // Empty (false) when no gradient is wanted: grad mode is off or no input needs one. Edges follow `inputs` in order.
  Recording(Context& context, BackwardFunction backward, std::initializer_list<const Tensor*> inputs) {
    if (context.grad_enabled) node_ = start(context, backward, inputs);
  }
  Recording(Context& context, BackwardFunction backward, std::span<const Tensor> inputs) {
    if (context.grad_enabled) node_ = start(context, backward, inputs);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (node_ && node_->ghost) node_->context->return_ghost();
  }

  explicit operator bool() const { return static_cast<bool>(node_); }
  Node* node() const { return node_.get(); }
  // Whether input `edge` needs a gradient (false without a graph).
  bool wants(std::size_t edge) const { return node_ && node_->wants(edge); }
  // Makes `output` the node's next output.
  Tensor finish(Tensor output) {
    if (node_) add_output(*output.impl());
    return output;
  }

 private:
  static Ref<Node> start(Context& context, BackwardFunction backward, std::initializer_list<const Tensor*> inputs);
  static Ref<Node> start(Context& context, BackwardFunction backward, std::span<const Tensor> inputs);
  void add_output(TensorImpl& output);

  Ref<Node> node_;
};

// Keeps `tensor` in the node's next slot for backward, or a ticket for it inside a checkpoint. Saving the node's own
// output keeps an alias outside of the graph, so that node and output do not own each other.
void save_input(Node* node, const Tensor& tensor);
void save_output(Node* node, const Tensor& tensor);

// The saved tensor of a slot; may run a checkpointed region again. A ticket gives its tensor away.
Tensor unpack(Node& node, std::size_t slot);

// The same storage, outside of the graph.
Tensor detach(const Tensor& tensor);

}  // namespace ullage::tensor
