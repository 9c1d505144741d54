// The free blocks of one stream in one pool, in the order in which PyTorch's allocator looks for a fit: by size, then
// by address.
//
// A program asks for few different sizes, and what it frees has few different sizes too, be it a thousand blocks. So
// there is a short table of sizes, and for each size a row of addresses whose lowest is taken first. Tables keep their
// room.
#pragma once

#include <cstdint>
#include <vector>

namespace ullage::memory {

struct FreeBlock {
  std::uint64_t address;
  std::uint32_t block;
};

class FreeList {
 public:
  // The place of a block here, until the list changes.
  struct Position {
    std::uint32_t size = 0;  // index into sizes_
    std::uint32_t at = 0;    // index into its row
  };

  // The smallest block of at least that size, of equal ones that with the lowest address; end() if there is none.
  Position at_least(std::int64_t bytes) const {
    const std::uint32_t size = index_of(bytes);
    return size == sizes_.size() ? end() : Position{size, rows_[sizes_[size].row].head};
  }
  Position begin() const { return sizes_.empty() ? end() : Position{0, rows_[sizes_[0].row].head}; }
  Position end() const { return {static_cast<std::uint32_t>(sizes_.size()), 0}; }
  bool is_end(const Position& at) const { return at.size == sizes_.size(); }
  Position next(Position at) const;
  // The one before, which must exist.
  Position previous(Position at) const;

  std::int64_t bytes(Position at) const { return sizes_[at.size].bytes; }
  std::uint32_t block(Position at) const { return rows_[sizes_[at.size].row].blocks[at.at].block; }
  bool empty() const { return sizes_.empty(); }

  void insert(std::int64_t bytes, FreeBlock block);
  void erase(Position at);
  // The block with that size and address, which must be here.
  void erase(std::int64_t bytes, std::uint64_t address);

  // All blocks in order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Position at = begin(); !is_end(at); at = next(at)) visit(block(at));
  }

 private:
  struct Size {
    std::int64_t bytes;
    std::uint32_t row;
  };
  // Ascending addresses from `head` on; what lies before was taken.
  struct Row {
    std::vector<FreeBlock> blocks;
    std::uint32_t head = 0;
  };

  // Index of the first size that is not smaller.
  std::uint32_t index_of(std::int64_t bytes) const {
    const Size* first = sizes_.data();
    std::size_t left = sizes_.size();
    while (left > 0) {
      const std::size_t half = left / 2;
      const bool below = first[half].bytes < bytes;
      first += below ? half + 1 : 0;
      left = below ? left - half - 1 : half;
    }
    return static_cast<std::uint32_t>(first - sizes_.data());
  }
  void add_size(std::uint32_t at, std::int64_t bytes);

  std::vector<Size> sizes_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> spare_rows_;
};

}  // namespace ullage::memory
