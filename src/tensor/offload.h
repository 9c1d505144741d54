// Tensors that are saved for backward and wait in the host's memory until they are used
// (torch.autograd.graph.saved_tensors_hooks), by the rules of torchtune's OffloadActivations
// (torchtune/training/_activation_offloading.py, 0.5): copies go and come back on a second stream.
//
// A tensor that has left lives on in a stash until `window` more tensors have been saved, so that its copy is surely
// done. What has come back lives until the next node that uses such a tensor has run; if something else holds it by
// then, a view in a result or a checkpoint run again, as long as that. Host copies are pinned.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tensor/context.h"

namespace ullage::tensor {

class SavedOffload {
 public:
  struct Rules {
    std::int64_t smallest_bytes = 1024;  // min_offload_size
    std::uint32_t window = 5;            // max_fwd_stash_size
    bool layers_are_nodes = false;       // a compiled layer's backward is one node
  };

  // Tells the context of itself; outlives all tensors.
  SavedOffload(Context& context, Rules rules);
  SavedOffload(const SavedOffload&) = delete;
  SavedOffload& operator=(const SavedOffload&) = delete;

  Context& context() const { return context_; }

  // Sends a tensor away; returns its number, or 0 where it stays as it is (parameters and small ones).
  std::uint32_t pack(const Tensor& tensor);
  // Brings it back, once.
  Tensor unpack(std::uint32_t number);
  // Around each node of a backward pass, with its layer: what it has used may go once it has run.
  void before_node(std::int16_t layer) {
    if (!used_.empty() && layer != layer_) let_go();
  }
  void after_node(std::int16_t layer) {
    layer_ = layer;
    const bool goes_on = rules_.layers_are_nodes && layer != memory::kNoLayer;
    if (!used_.empty() && !goes_on) let_go();
  }
  void end_of_backward();

 private:
  struct Numbered {
    std::uint32_t number = 0;
    Tensor tensor;
  };
  // One use by the running node.
  struct Use {
    std::uint32_t number = 0;
    bool brought = false;  // from the host; else it was still in the stash
  };
  void let_go();
  Tensor on_host(const Tensor& tensor);
  Tensor on_device(const Tensor& copy);

  Context& context_;
  Rules rules_;
  std::uint32_t last_ = 0;
  std::deque<Numbered> leaving_;  // the stash
  std::deque<Numbered> away_;     // on the host
  std::deque<Numbered> back_;     // on the device again
  std::vector<Use> used_;
  std::int16_t layer_ = memory::kNoLayer;  // of the node that ran last
  std::size_t used_before_ = 0;            // how many of back_ are of nodes before the running one
};

}  // namespace ullage::tensor
