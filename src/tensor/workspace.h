// Memory that one simulation leaves to the next: pools of tensors and graph nodes, and tables of timelines.
//
// Nothing of a result is kept, only the room for it. A caller that predicts many steps (a search) passes the same
// Workspace each time and spares the operating system from handing out and clearing megabytes for every call. It must
// outlive the contexts that use it; one thread at a time.
#pragma once

#include <utility>
#include <vector>

#include "memory/timeline.h"
#include "tensor/node.h"
#include "tensor/op_names.h"

namespace ullage::tensor {

class Workspace {
 public:
  // An empty timeline, with room where one was given back.
  memory::Timeline take() {
    if (spare_.empty()) return {};
    memory::Timeline out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }

  // For a timeline that was taken here and that nobody reads any more.
  void give_back(memory::Timeline timeline) {
    // The operators' names, which a context has put first, serve the next one.
    timeline.names.shrink(timeline.names.size() > kOpNames.size() ? kOpNames.size() + 1 : 1);
    timeline.blocks.clear();
    timeline.events.clear();
    timeline.ops.clear();
    timeline.marks.clear();
    timeline.segments.clear();
    timeline.addresses.clear();
    timeline.times_us.clear();
    timeline.granularity_bytes = 1;
    spare_.push_back(std::move(timeline));
  }

 private:
  friend class Context;
  friend void destroy(Storage*);
  friend void destroy(TensorImpl*);
  friend void destroy(Node*);
  friend void destroy(Ticket*);

  Pool<Storage> storages_;
  Pool<TensorImpl> tensors_;
  Pool<Node> nodes_;
  Pool<Ticket> tickets_;
  std::vector<memory::Timeline> spare_;
};

}  // namespace ullage::tensor
