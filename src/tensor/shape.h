// Shapes and strides of tensors without elements.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace ullage::tensor {

inline constexpr int kMaxDims = 5;

// A short list of sizes or strides, in elements, outermost first.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Negative indices count from the end, as in Python.
  std::int64_t operator[](int i) const { return values_[index(i)]; }
  std::int64_t& operator[](int i) { return values_[index(i)]; }
  void push_back(std::int64_t value) {
    assert(size_ < kMaxDims);
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  void insert(int at, std::int64_t value);
  void erase(int at);
  std::int64_t* begin() { return values_.data(); }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + size_; }

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i) {
      if (a.values_[static_cast<std::size_t>(i)] != b.values_[static_cast<std::size_t>(i)]) return false;
    }
    return true;
  }

 private:
  std::size_t index(int i) const {
    assert(i < size_ && i >= -size_);
    return static_cast<std::size_t>(i < 0 ? i + size_ : i);
  }

  // Not initialised beyond size_: tensors are made by the hundred thousand.
  std::array<std::int64_t, kMaxDims> values_;
  int size_ = 0;
};

inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

// Product of the sizes, at most kMaxElements.
inline std::int64_t numel(const Dims& sizes) {
  std::int64_t total = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(total, size, &total)) return kMaxElements;
  }
  return total < kMaxElements ? total : kMaxElements;
}

// Row-major strides.
inline void set_contiguous_strides(const Dims& sizes, Dims& strides) {
  strides = sizes;
  std::int64_t* out = strides.begin();
  std::int64_t stride = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    const std::int64_t size = out[i];
    out[i] = stride;
    if (size > 1) stride *= size;
  }
}
inline Dims contiguous_strides(const Dims& sizes) {
  Dims out;
  set_contiguous_strides(sizes, out);
  return out;
}

// As torch's is_contiguous: dimensions of size one may have any stride, an empty tensor is contiguous.
bool is_contiguous(const Dims& sizes, const Dims& strides);

// Whether every element has its own place and there are no holes.
bool is_dense(const Dims& sizes, const Dims& strides);

// Strides of a new tensor of `sizes` that keeps the order in which `like` walks memory (torch.empty_like with
// preserve_format; what elementwise operators give their result). Same strides if `like` is dense.
Dims strides_like(const Dims& sizes, const Dims& like_strides);

// Shape of a and b broadcast together.
Dims broadcast(const Dims& a, const Dims& b);

// Strides with which `sizes`/`strides` can be seen as `to` without copying, or false (torch's computeStride).
bool view_strides(const Dims& sizes, const Dims& strides, const Dims& to, Dims& out);

}  // namespace ullage::tensor
