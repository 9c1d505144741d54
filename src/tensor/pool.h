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

  [[gnu::noinline]] void grow() {  // its registers would be saved in each make()
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
  [[gnu::always_inline]] ~Ref() { let_go(object_); }

  void reset() { let_go(std::exchange(object_, nullptr)); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  // Inline up to the end of a life (`destroy` is not): most handles that go are empty, or not the last.
  [[gnu::always_inline]] static void let_go(T* object) {
    if (object != nullptr && --object->refs == 0) destroy(object);
  }

  T* object_ = nullptr;
};

// A list that keeps up to N entries in place, and more elsewhere. Cleared, or longer than N, it lets its entries go
// first to last: standard libraries take vectors apart in different orders, and when a tensor dies is part of the
// result.
template <class T, std::uint32_t N>
class SmallList {
 public:
  SmallList() = default;
  SmallList(const SmallList&) = delete;
  SmallList& operator=(const SmallList&) = delete;
  ~SmallList() {
    if (elsewhere_) clear();  // an array's own order is the language's
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return entries_[i]; }
  const T& operator[](std::size_t i) const { return entries_[i]; }
  T* begin() { return entries_; }
  T* end() { return entries_ + size_; }
  void clear() {
    for (T& entry : *this) entry = T{};
    size_ = 0;
  }
  // Of `size` empty entries; the list is empty before.
  void resize(std::size_t size) {
    if (size > room_) grow(static_cast<std::uint32_t>(size));
    size_ = static_cast<std::uint32_t>(size);
  }
  // A further entry, empty; those there were may move.
  T& add() {
    if (size_ == room_) grow(2 * room_);
    return entries_[size_++];
  }

 private:
  void grow(std::uint32_t room) {
    std::unique_ptr<T[]> larger(new T[room]);
    for (std::uint32_t i = 0; i < size_; ++i) larger[i] = std::move(entries_[i]);
    elsewhere_ = std::move(larger);
    entries_ = elsewhere_.get();
    room_ = room;
  }

  T in_place_[N];
  T* entries_ = in_place_;
  std::uint32_t size_ = 0;
  std::uint32_t room_ = N;
  std::unique_ptr<T[]> elsewhere_;
};

}  // namespace ullage::tensor
