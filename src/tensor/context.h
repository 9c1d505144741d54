// Everything that PyTorch keeps in globals, for one simulated process: the timeline being written, grad mode, the
// creation counter of the graph, the stack of saved-tensor hooks, and the names of who is running.
//
// A Context must outlive its tensors. Not thread-safe, by design: one tape, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/timeline.h"
#include "tensor/node.h"
#include "tensor/op_names.h"
#include "tensor/policy.h"
#include "tensor/workspace.h"

namespace ullage::tensor {

// A checkpoint whose region is running: either for the first time, handing out tickets, or again, filling them.
struct Hook {
  Checkpoint* checkpoint = nullptr;
  bool rerun = false;
};

// Told of each gradient that a parameter has accumulated (register_post_accumulate_grad_hook).
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  GradientListener() = default;
  GradientListener(const GradientListener&) = delete;
  GradientListener& operator=(const GradientListener&) = delete;
  virtual void on_gradient(const Tensor& parameter) = 0;
};

class SavedOffload;

class Context {
 public:
  explicit Context(Policy policy);
  // `workspace` lends the memory and outlives the context.
  Context(Policy policy, Workspace& workspace);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Policy& policy() const { return policy_; }
  memory::Timeline& timeline() { return timeline_; }
  // Ends the recording: what dies later leaves no trace.
  memory::Timeline take_timeline() {
    recording_ = false;
    return std::move(timeline_);
  }
  NameId intern(std::string_view name) { return timeline_.names.intern(name); }

  // --- recording -------------------------------------------------------------------------------------------------
  // Starts an operator: what is allocated from here on is its doing.
  void record_op(Op op, std::int64_t flops, std::int64_t bytes_moved);
  // A storage of `bytes`, and its alloc event (none for zero bytes, nor while discarding).
  Ref<Storage> allocate(std::int64_t bytes);
  void freed(const Storage& storage);
  // Changes what the memory is for, once.
  void retag(Storage& storage, memory::Component component);
  void set_label(const Storage& storage, NameId label);
  void mark(NameId name);
  // Starts a stretch of work that belongs to one layer (or to none); repeated stretches are what splicing looks for.
  void begin_section(std::int16_t of_layer) {
    if (sections_.empty() || sections_.back().layer != of_layer) start_section(of_layer);
  }

  // --- tensors ---------------------------------------------------------------------------------------------------
  Tensor make(const Dims& sizes, DType dtype);                       // contiguous
  Tensor make(const Dims& sizes, const Dims& strides, DType dtype);  // dense
  Tensor make_like(const Tensor& like, DType dtype);                 // of a dense tensor's sizes and strides
  Tensor make_in_order_of(const Tensor& like, DType dtype);          // of any tensor's, without holes: torch.empty_like
  Tensor alias(const Tensor& of, const Dims& sizes, const Dims& strides);
  Tensor alias(const Tensor& of);  // of the same sizes and strides
  Node* make_node() { return workspace_.nodes_.make(); }
  // A node that stands in for one that nobody will walk, for as long as its operator runs.
  Node* borrow_ghost() {
    if (ghosts_lent_ == ghosts_.size()) add_ghost();
    return ghosts_[ghosts_lent_++].get();
  }
  void return_ghost() { --ghosts_lent_; }
  Ticket* make_ticket() { return workspace_.tickets_.make(); }

  // --- state, saved and restored by the guards below ---------------------------------------------------------------
  bool grad_enabled = true;
  bool discarding = false;  // a rerun has all it needs; the rest of the region runs without effect
  // Operators save for backward but make no graph: a rerun's tensors are kept by tickets, and its graph is dropped
  // without having been walked.
  bool ghost_graph = false;
  memory::Phase phase = memory::Phase::setup;
  memory::Component component = memory::Component::temporaries;  // of new storages, as the next two
  memory::Space space = memory::Space::device;
  std::uint8_t stream = 0;
  NameId module = 0;
  std::int16_t layer = memory::kNoLayer;
  std::uint64_t sequence = 0;
  std::uint32_t epoch = 0;
  std::vector<Hook> hooks;
  GradientListener* gradient_listener = nullptr;
  SavedOffload* offload = nullptr;  // where saved tensors wait on the host, if they do
  bool offloading = false;          // what is saved now goes there
  Autocast autocast;
  std::int32_t autocast_regions = 0;  // how many are open

  // Whether operators of the lists that only CUDA has cast.
  bool autocasts_on_cuda() const { return autocast.enabled && policy_.cuda; }
  // Autocast's cache: the cast of a leaf, empty if there is none.
  Tensor cached_cast(const Tensor& leaf) const;
  void cache_cast(const Tensor& leaf, Tensor cast);
  void drop_cached_casts();

  struct Section {
    std::uint32_t event = 0;
    std::uint32_t op = 0;
    std::uint32_t block = 0;
    std::int16_t layer = memory::kNoLayer;
  };
  const std::vector<Section>& sections() const { return sections_; }

 private:
  struct CachedCast {
    Tensor leaf;
    Tensor cast;
    std::int16_t layer = memory::kNoLayer;
  };
  Context(Policy policy, Workspace* workspace, std::unique_ptr<Workspace> own);
  void start_section(std::int16_t of_layer);
  void add_ghost();
  friend void destroy(Storage*);
  friend void destroy(TensorImpl*);
  friend void destroy(Node*);
  friend void destroy(Ticket*);

  std::unique_ptr<Workspace> own_workspace_;  // where none was lent
  Workspace& workspace_;
  Policy policy_;
  memory::Timeline timeline_;
  memory::OpId op_ = memory::kNone;  // the running operator
  std::vector<Section> sections_;
  std::vector<CachedCast> casts_;
  std::vector<Node*> dying_;  // nodes being taken apart one after the other: graphs are deeper than the stack
  bool draining_ = false;
  bool recording_ = true;
  std::vector<Ref<Node>> ghosts_;  // behind all that the death of a node needs
  std::size_t ghosts_lent_ = 0;
};

// Sets a field for the lifetime of the guard.
template <class T>
class Restore {
 public:
  Restore(T& field, T value) : field_(field), old_(std::exchange(field, std::move(value))) {}
  ~Restore() { field_ = std::move(old_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& field_;
  T old_;
};

// Who is running: for the names of what is allocated meanwhile.
class Scope {
 public:
  Scope(Context& context, NameId module) : module_(context.module, module) {}

 private:
  Restore<NameId> module_;
};

class NoGrad {
 public:
  explicit NoGrad(Context& context) : grad_(context.grad_enabled, false) {}

 private:
  Restore<bool> grad_;
};

}  // namespace ullage::tensor
