#include "tensor/context.h"

#include "tensor/checkpoint.h"
#include "tensor/offload.h"

namespace ullage::tensor {
Context::Context(Policy policy) : Context(policy, nullptr, std::make_unique<Workspace>()) {}

Context::Context(Policy policy, Workspace& workspace) : Context(policy, &workspace, nullptr) {}

Context::Context(Policy policy, Workspace* workspace, std::unique_ptr<Workspace> own)
    : own_workspace_(std::move(own)),
      workspace_(workspace == nullptr ? *own_workspace_ : *workspace),
      policy_(policy),
      timeline_(workspace_.take()) {
  timeline_.granularity_bytes = policy_.granularity_bytes;
  if (timeline_.names.size() == 1) {
    for (const std::string_view name : kOpNames) timeline_.names.intern(name);
  }
  timeline_.blocks.reserve(4096);
  timeline_.events.reserve(12288);
  timeline_.ops.reserve(4096);
}

Context::~Context() = default;

void Context::record_op(Op op, std::int64_t flops, std::int64_t bytes_moved) {
  if (discarding) return;
  // Operator names are the first entries of the table, behind the empty name.
  const auto name = static_cast<NameId>(static_cast<std::uint16_t>(op) + 1);
  ++op_;  // from kNone to 0
  timeline_.ops.push_back(
      {flops, bytes_moved, static_cast<std::uint32_t>(timeline_.events.size()), name, module, layer, phase});
}

Ref<Storage> Context::allocate(std::int64_t bytes) {
  Ref<Storage> storage(workspace_.storages_.make());
  storage->bytes = bytes;
  storage->context = this;
  storage->component = component;
  storage->space = space;
  storage->stream = stream;
  if (bytes == 0 || discarding) return storage;
  storage->block = static_cast<memory::BlockId>(timeline_.blocks.size());
  timeline_.blocks.push_back({bytes, op_, 0, layer});
  timeline_.events.push_back({storage->block, memory::EventKind::alloc, component, space, stream});
  return storage;
}

void Context::freed(const Storage& storage) {
  if (storage.block == memory::kNone || !recording_) return;
  timeline_.events.push_back(
      {storage.block, memory::EventKind::free, storage.component, storage.space, storage.stream});
}

void Context::retag(Storage& storage, memory::Component to) {
  if (storage.component == to) return;
  storage.component = to;
  if (storage.block == memory::kNone) return;
  timeline_.events.push_back({storage.block, memory::EventKind::retag, to, storage.space, storage.stream});
}

void Context::set_label(const Storage& storage, NameId label) {
  if (storage.block != memory::kNone) timeline_.blocks[storage.block].label = label;
}

void Context::mark(NameId name) {
  timeline_.marks.push_back({name, static_cast<std::uint32_t>(timeline_.events.size())});
}

void Context::start_section(std::int16_t new_layer) {
  sections_.push_back({static_cast<std::uint32_t>(timeline_.events.size()),
                       static_cast<std::uint32_t>(timeline_.ops.size()),
                       static_cast<std::uint32_t>(timeline_.blocks.size()), new_layer});
}

Tensor Context::make(const Dims& sizes, const Dims& strides, DType dtype) {
  Tensor out(workspace_.tensors_.make());
  TensorImpl& impl = *out.impl();
  impl.dtype = dtype;
  impl.sizes = sizes;
  impl.strides = strides;
  impl.contiguous = is_contiguous(sizes, strides);
  impl.elements = numel(sizes);
  impl.storage = allocate(multiply_saturated(impl.elements, size_of(dtype)));
  return out;
}

Tensor Context::make(const Dims& sizes, DType dtype) {
  Tensor out(workspace_.tensors_.make());
  TensorImpl& impl = *out.impl();
  impl.dtype = dtype;
  impl.sizes = sizes;
  set_contiguous_strides(sizes, impl.strides);
  impl.elements = numel(sizes);
  impl.storage = allocate(multiply_saturated(impl.elements, size_of(dtype)));
  return out;
}

Tensor Context::make_like(const Tensor& like, DType dtype) {
  Tensor out(workspace_.tensors_.make());
  TensorImpl& impl = *out.impl();
  impl.dtype = dtype;
  impl.sizes = like.sizes();
  impl.strides = like.strides();
  impl.contiguous = like.contiguous();
  impl.elements = like.numel();
  impl.storage = allocate(multiply_saturated(impl.elements, size_of(dtype)));
  return out;
}

Tensor Context::make_in_order_of(const Tensor& like, DType dtype) {
  return like.contiguous() ? make_like(like, dtype)
                           : make(like.sizes(), strides_like(like.sizes(), like.strides()), dtype);
}

Tensor Context::alias(const Tensor& of, const Dims& sizes, const Dims& strides) {
  Tensor out(workspace_.tensors_.make());
  TensorImpl& impl = *out.impl();
  impl.dtype = of.dtype();
  impl.contiguous = is_contiguous(sizes, strides);
  impl.elements = numel(sizes);
  impl.is_view = true;
  impl.sizes = sizes;
  impl.strides = strides;
  impl.storage = of.impl()->storage;
  return out;
}

Tensor Context::alias(const Tensor& of) {
  Tensor out(workspace_.tensors_.make());
  TensorImpl& impl = *out.impl();
  impl.dtype = of.dtype();
  impl.contiguous = of.contiguous();
  impl.elements = of.numel();
  impl.is_view = true;
  impl.sizes = of.sizes();
  impl.strides = of.strides();
  impl.storage = of.impl()->storage;
  return out;
}

Tensor Context::cached_cast(const Tensor& leaf) const {
  const std::uint32_t place = leaf.impl()->cast;
  return place == 0 ? Tensor{} : casts_[place - 1].cast;
}

void Context::cache_cast(const Tensor& leaf, Tensor cast) {
  casts_.push_back({leaf, std::move(cast), layer});
  leaf.impl()->cast = static_cast<std::uint32_t>(casts_.size());
}

// Layer by layer, in the order in which they were made.
void Context::drop_cached_casts() {
  if (casts_.empty()) return;
  for (CachedCast& entry : casts_) {
    begin_section(entry.layer);
    entry.leaf.impl()->cast = 0;
    entry.cast.reset();
    entry.leaf.reset();
  }
  casts_.clear();
  begin_section(layer);
}

void Context::add_ghost() {
  ghosts_.emplace_back(make_node());
  ghosts_.back()->context = this;
  ghosts_.back()->ghost = true;
}

void destroy(Storage* storage) {
  Context& context = *storage->context;
  context.freed(*storage);
  context.workspace_.storages_.give_back(storage);
}

void destroy(TensorImpl* tensor) {
  // The pool must be reached before the tensor lets go of what leads to it.
  Context& context = *tensor->storage->context;
  context.workspace_.tensors_.give_back(tensor);
}

void destroy(Ticket* ticket) {
  const bool away = ticket->offload != nullptr;
  Context& context = away ? ticket->offload->context() : *ticket->checkpoint->context;
  if (!away) ticket->checkpoint->tickets[ticket->index] = nullptr;
  context.workspace_.tickets_.give_back(ticket);
}

void destroy(Node* node) {
  Context& context = *node->context;
  context.dying_.push_back(node);
  if (context.draining_) return;
  context.draining_ = true;
  while (!context.dying_.empty()) {
    Node* next = context.dying_.back();
    context.dying_.pop_back();
    if (next->leaf) next->leaf->accumulator = nullptr;
    context.begin_section(next->layer);
    context.workspace_.nodes_.give_back(next);
  }
  context.draining_ = false;
}

}  // namespace ullage::tensor
