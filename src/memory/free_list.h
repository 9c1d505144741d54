// The free blocks of one stream in one pool, in the order in which PyTorch's allocator looks for a fit: by size, then
// by address.
//
// A program asks for few different sizes, and what it frees has few different sizes too, be it a thousand blocks. So
// there is a short table of sizes, and for each size a row of blocks by address, whose lowest is taken first. The last
// block of a size often goes just before the next one comes, so a size keeps its row while that is empty, until such
// rows are the greater part; and most sizes asked for are found again by a hint. A row is a chain through links that
// the owner of the blocks keeps, so that a block leaves it without a search.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace ullage::memory {

// Where a free block stands among those of its size.
struct FreeLink {
  std::uint64_t address = 0;
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
};

// Methods that walk or change rows take the links of all blocks, by block.
class FreeList {
 public:
  static constexpr std::uint32_t kNoRow = 0xFFFFFFFF;
  static constexpr std::uint32_t kNoBlock = 0xFFFFFFFF;

  FreeList() { hints_.fill(kNoRow); }

  // The place of a block here, until the list changes.
  struct Position {
    std::uint32_t row = kNoRow;
    std::uint32_t block = kNoBlock;
    friend bool operator==(const Position&, const Position&) = default;
  };

  // The smallest block of at least that size, of equal ones that with the lowest address; end() if there is none.
  Position at_least(std::int64_t bytes) const {
    const std::uint32_t row = hints_[hint_of(bytes)];
    if (is_of(row, bytes) && rows_[row].first != kNoBlock) return {row, rows_[row].first};
    return first_from(index_of(bytes));
  }
  Position begin() const { return first_from(0); }
  static Position end() { return {}; }
  static bool is_end(const Position& at) { return at.row == kNoRow; }
  Position next(const FreeLink* links, Position at) const;
  // The one before, which must exist.
  Position previous(const FreeLink* links, Position at) const;

  std::int64_t bytes(Position at) const { return rows_[at.row].bytes; }
  static std::uint32_t block(Position at) { return at.block; }

  // Returns the block's row, which is the same until the block is erased.
  std::uint32_t insert(FreeLink* links, std::int64_t bytes, std::uint64_t address, std::uint32_t block);
  // A block that stands in that row.
  void erase(FreeLink* links, std::uint32_t row, std::uint32_t block) {
    const FreeLink link = links[block];
    Row& of = rows_[row];
    if (link.previous != kNoBlock) links[link.previous].next = link.next;
    else of.first = link.next;
    if (link.next != kNoBlock) links[link.next].previous = link.previous;
    else of.last = link.previous;
    if (of.first == kNoBlock) empty();
  }

  // All blocks in order.
  template <class Visit>
  void for_each(const FreeLink* links, Visit visit) const {
    for (Position at = begin(); !is_end(at); at = next(links, at)) visit(at.block);
  }

 private:
  struct Size {
    std::int64_t bytes;
    std::uint32_t row;
  };
  struct Row {
    std::int64_t bytes = 0;  // 0: nobody's
    std::uint32_t first = kNoBlock;
    std::uint32_t last = kNoBlock;
  };
  static constexpr std::size_t kFewSizes = 16;  // that are not worth sweeping
  static constexpr int kHintBits = 6;

  static std::size_t hint_of(std::int64_t bytes) {
    return (static_cast<std::uint64_t>(bytes) * 0x9E3779B97F4A7C15) >> (64 - kHintBits);
  }
  bool is_of(std::uint32_t row, std::int64_t bytes) const { return row < rows_.size() && rows_[row].bytes == bytes; }
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
  // The first block of the first size from there on that has one.
  Position first_from(std::uint32_t size) const {
    for (; size < sizes_.size(); ++size) {
      const std::uint32_t row = sizes_[size].row;
      if (rows_[row].first != kNoBlock) return {row, rows_[row].first};
    }
    return end();
  }
  std::uint32_t find_row(std::int64_t bytes);
  static void insert_inside(FreeLink* links, const Row& row, std::uint32_t block);
  void empty() {
    ++empty_rows_;
    if (sizes_.size() > kFewSizes && empty_rows_ > sizes_.size() / 2) sweep();
  }
  void sweep();

  std::vector<Size> sizes_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> spare_rows_;
  std::size_t empty_rows_ = 0;                       // of sizes_
  std::array<std::uint32_t, 1 << kHintBits> hints_;  // the row of a size, if it is that size's
};

}  // namespace ullage::memory
