#include "tensor/shape.h"

#include <algorithm>

namespace ullage::tensor {

void Dims::insert(int at, std::int64_t value) {
  assert(size_ < kMaxDims);
  for (int i = size_; i > at; --i) values_[static_cast<std::size_t>(i)] = values_[static_cast<std::size_t>(i - 1)];
  values_[static_cast<std::size_t>(at)] = value;
  ++size_;
}

void Dims::erase(int at) {
  for (int i = at; i + 1 < size_; ++i) values_[static_cast<std::size_t>(i)] = values_[static_cast<std::size_t>(i + 1)];
  --size_;
}

bool is_contiguous(const Dims& sizes, const Dims& strides) {
  std::int64_t expected = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  if (is_contiguous(sizes, strides)) return true;
  // From the fastest dimension on: some dimension not met yet must have the stride that the met ones add up to.
  unsigned left = 0;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) left |= 1u << i;
  }
  std::int64_t expected = 1;
  while (left != 0) {
    int next = -1;
    for (int i = 0; i < sizes.size(); ++i) {
      if ((left >> i & 1u) != 0 && strides[i] == expected) next = i;
    }
    if (next < 0) return false;
    left &= ~(1u << next);
    expected *= sizes[next];
  }
  return true;
}

Dims strides_like(const Dims& sizes, const Dims& like_strides) {
  if (is_dense(sizes, like_strides)) return like_strides;
  // Not dense: torch sorts the dimensions by stride, keeping the given order among equals and for broadcast ones.
  std::array<int, kMaxDims> order{};
  const int n = sizes.size();
  for (int i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = n - 1 - i;
  const auto comes_after = [&](int a, int b) {  // a is slower than b
    if (like_strides[a] == 0 || like_strides[b] == 0) return false;
    if (like_strides[a] != like_strides[b]) return like_strides[a] > like_strides[b];
    return sizes[a] > sizes[b];
  };
  for (int i = 1; i < n; ++i) {
    int right = i;
    for (int left = i - 1; left >= 0; --left) {
      const int a = order[static_cast<std::size_t>(left)];
      const int b = order[static_cast<std::size_t>(right)];
      if (comes_after(a, b)) {
        std::swap(order[static_cast<std::size_t>(left)], order[static_cast<std::size_t>(right)]);
        right = left;
      } else if (comes_after(b, a)) {
        break;
      }
    }
  }
  Dims out = sizes;
  std::int64_t stride = 1;
  for (int i = 0; i < n; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    out[dim] = stride;
    stride *= std::max<std::int64_t>(sizes[dim], 1);
  }
  return out;
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const int shift = longer.size() - shorter.size();
  for (int i = 0; i < shorter.size(); ++i) {
    if (out[i + shift] == 1) out[i + shift] = shorter[i];
  }
  return out;
}

bool view_strides(const Dims& sizes, const Dims& strides, const Dims& to, Dims& out) {
  out = to;
  if (numel(sizes) == 0) {
    out = contiguous_strides(to);
    return true;
  }
  if (sizes.empty()) {
    for (int i = 0; i < to.size(); ++i) out[i] = 1;
    return true;
  }
  int view_dim = to.size() - 1;
  std::int64_t base_stride = strides[-1];
  std::int64_t tensor_numel = 1;
  std::int64_t view_numel = 1;
  for (int dim = sizes.size() - 1; dim >= 0; --dim) {
    tensor_numel *= sizes[dim];
    // The end of a chunk of dimensions that are contiguous among themselves.
    const bool chunk_ends = dim == 0 || (sizes[dim - 1] != 1 && strides[dim - 1] != tensor_numel * base_stride);
    if (!chunk_ends) continue;
    while (view_dim >= 0 && (view_numel < tensor_numel || to[view_dim] == 1)) {
      out[view_dim] = view_numel * base_stride;
      view_numel *= to[view_dim];
      --view_dim;
    }
    if (view_numel != tensor_numel) return false;
    if (dim > 0) {
      base_stride = strides[dim - 1];
      tensor_numel = 1;
      view_numel = 1;
    }
  }
  return view_dim == -1;
}

}  // namespace ullage::tensor
