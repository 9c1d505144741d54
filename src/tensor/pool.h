// Fixed-size memory from free lists, and intrusive reference counts that are not atomic.
//
// A training step makes tens of thousands of tensors and graph nodes that live for microseconds; a general allocator
// and atomic counts would be most of the time spent. One tape, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ullage::tensor {

template <class T>
class Pool {
 public:
  T* make() {
    if (free_ == nullptr) grow();
    Slot* slot = free_;
    free_ = slot->next;
    return ::new (static_cast<void*>(slot)) T;  // not T(): that would clear the whole object first
  }

  void give_back(T* object) {
    object->~T();
    Slot* slot = reinterpret_cast<Slot*>(object);
    slot->next = free_;
    free_ = slot;
  }

 private:
  union Slot {
    Slot* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  static constexpr std::size_t kChunk = 256;

  void grow() {
    chunks_.push_back(std::unique_ptr<Slot[]>(new Slot[kChunk]));
    Slot* chunk = chunks_.back().get();
    for (std::size_t i = kChunk; i-- > 0;) {
      chunk[i].next = free_;
      free_ = &chunk[i];
    }
  }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  Slot* free_ = nullptr;
};

// A counted reference to an object with a member `refs`; the last one calls `destroy(object)`.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) ++object_->refs;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (object_ == nullptr) return;
    T* object = std::exchange(object_, nullptr);
    if (--object->refs == 0) destroy(object);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// A list that keeps its first N entries in place. Cleared, or longer than N, it lets its entries go first to last:
// standard libraries take vectors apart in different orders, and when a tensor dies is part of the result.
template <class T, std::size_t N>
class SmallList {
 public:
  SmallList() = default;
  SmallList(const SmallList&) = delete;
  SmallList& operator=(const SmallList&) = delete;
  ~SmallList() {
    if (rest_) clear();  // an array's own order is the language's
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return i < N ? first_[i] : (*rest_)[i - N]; }
  const T& operator[](std::size_t i) const { return i < N ? first_[i] : (*rest_)[i - N]; }
  void clear() {
    for (std::size_t i = 0; i < size_; ++i) (*this)[i] = T{};
    rest_.reset();
    size_ = 0;
  }
  // Of `size` empty entries; the list is empty before.
  void resize(std::size_t size) {
    if (size > N) {
      size_ = size - 1;
      grow();
    }
    size_ = size;
  }
  T& push_back(T value) {
    if (size_ >= N) grow();
    T& place = (*this)[size_++];
    place = std::move(value);
    return place;
  }

 private:
  void grow() {
    if (!rest_) rest_ = std::make_unique<std::vector<T>>();
    rest_->resize(size_ - N + 1);
  }

  T first_[N];
  std::unique_ptr<std::vector<T>> rest_;
  std::size_t size_ = 0;
};

}  // namespace ullage::tensor
