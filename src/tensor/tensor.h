// Tensors without elements: shape, strides, type and a storage whose life is an entry of the timeline.
//
// A Tensor is a counted handle, as in Python: copies refer to the same tensor, the storage is freed with the last
// tensor that uses it, and that moment becomes a `free` event. Pass tensors by value and move what you no longer need.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "memory/timeline.h"
#include "tensor/pool.h"
#include "tensor/shape.h"

namespace ullage::tensor {

class Context;
struct Node;

struct Storage {
  std::uint32_t refs = 0;
  memory::BlockId block = memory::kNone;  // kNone: no bytes, or made while nothing is recorded
  memory::Component component = memory::Component::temporaries;
  memory::Space space = memory::Space::device;
  std::uint8_t stream = 0;  // whose pool it comes from
  std::int64_t bytes = 0;
  Context* context = nullptr;
};
[[gnu::noinline]] void destroy(Storage* storage);

struct TensorImpl;
[[gnu::noinline]] void destroy(TensorImpl* tensor);
[[gnu::noinline]] void destroy(Node* node);

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorImpl* impl) : impl_(impl) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  [[gnu::always_inline]] ~Tensor() = default;  // as Ref's

  explicit operator bool() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }

  const Dims& sizes() const;
  const Dims& strides() const;
  std::int64_t size(int dim) const { return sizes()[dim]; }
  int dim() const { return sizes().size(); }
  DType dtype() const;
  std::int64_t numel() const;
  std::int64_t bytes() const { return numel() * size_of(dtype()); }  // of the elements, not of the storage
  bool contiguous() const;
  bool requires_grad() const;
  Context& context() const;
  Storage& storage() const;
  Tensor grad() const;         // a leaf's accumulated gradient, empty if none
  void set_grad(Tensor grad);  // empty clears it
  void reset() { impl_.reset(); }

 private:
  Ref<TensorImpl> impl_;
};

struct TensorImpl {
  std::uint32_t refs = 0;
  DType dtype = DType::f32;
  bool leaf_requires_grad = false;
  bool tracked = false;       // comes out of an operator that a gradient flows through
  bool contiguous = true;     // as is_contiguous(sizes, strides) says: asked for more often than it changes
  bool is_view = false;       // shares another tensor's storage
  bool is_parameter = false;  // a gradient that it accumulates counts as one of the model
  std::uint16_t output = 0;   // which output of grad_fn this is
  std::uint32_t cast = 0;     // place in autocast's cache of casts, from 1; 0: none
  std::int64_t elements = 0;  // product of the sizes
  Dims sizes;
  Dims strides;
  Ref<Storage> storage;
  Ref<Node> grad_fn;            // empty for leaves, and where the graph is not kept (Context::ghost_graph)
  Node* accumulator = nullptr;  // a leaf's; not owned: the accumulator owns the leaf, and clears this when it dies
  Tensor grad;
};

inline const Dims& Tensor::sizes() const { return impl_->sizes; }
inline const Dims& Tensor::strides() const { return impl_->strides; }
inline std::int64_t Tensor::numel() const { return impl_->elements; }
inline bool Tensor::contiguous() const { return impl_->contiguous; }
inline DType Tensor::dtype() const { return impl_->dtype; }
inline bool Tensor::requires_grad() const { return impl_ && (impl_->leaf_requires_grad || impl_->tracked); }
inline Storage& Tensor::storage() const { return *impl_->storage; }
inline Context& Tensor::context() const { return *impl_->storage->context; }
inline Tensor Tensor::grad() const { return impl_->grad; }
inline void Tensor::set_grad(Tensor grad) { impl_->grad = std::move(grad); }

}  // namespace ullage::tensor
