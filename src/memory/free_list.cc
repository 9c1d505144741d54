#include "memory/free_list.h"

#include <algorithm>

namespace ullage::memory {
namespace {

bool before(const FreeBlock& a, std::uint64_t address) { return a.address < address; }

}  // namespace

FreeList::Position FreeList::next(Position at) const {
  if (at.at + 1 < rows_[sizes_[at.size].row].blocks.size()) return {at.size, at.at + 1};
  return at.size + 1 == sizes_.size() ? end() : Position{at.size + 1, rows_[sizes_[at.size + 1].row].head};
}

FreeList::Position FreeList::previous(Position at) const {
  if (!is_end(at) && at.at > rows_[sizes_[at.size].row].head) return {at.size, at.at - 1};
  const auto last = static_cast<std::uint32_t>(rows_[sizes_[at.size - 1].row].blocks.size() - 1);
  return {at.size - 1, last};
}

void FreeList::add_size(std::uint32_t at, std::int64_t bytes) {
  std::uint32_t row = 0;
  if (spare_rows_.empty()) {
    row = static_cast<std::uint32_t>(rows_.size());
    rows_.emplace_back();
  } else {
    row = spare_rows_.back();
    spare_rows_.pop_back();
  }
  sizes_.insert(sizes_.begin() + at, {bytes, row});
}

void FreeList::insert(std::int64_t bytes, FreeBlock block) {
  const std::uint32_t size = index_of(bytes);
  if (size == sizes_.size() || sizes_[size].bytes != bytes) add_size(size, bytes);
  Row& row = rows_[sizes_[size].row];
  if (row.blocks.empty() || row.blocks.back().address < block.address) {
    row.blocks.push_back(block);
    return;
  }
  const auto first = row.blocks.begin() + row.head;
  if (row.head > 0 && block.address < first->address) {
    row.blocks[--row.head] = block;
    return;
  }
  row.blocks.insert(std::lower_bound(first, row.blocks.end(), block.address, before), block);
}

void FreeList::erase(Position at) {
  const std::uint32_t index = sizes_[at.size].row;
  Row& row = rows_[index];
  if (at.at == row.head) ++row.head;
  else row.blocks.erase(row.blocks.begin() + at.at);
  if (row.head < row.blocks.size()) return;
  row.blocks.clear();
  row.head = 0;
  spare_rows_.push_back(index);
  sizes_.erase(sizes_.begin() + at.size);
}

void FreeList::erase(std::int64_t bytes, std::uint64_t address) {
  const std::uint32_t size = index_of(bytes);
  const Row& row = rows_[sizes_[size].row];
  const auto at = std::lower_bound(row.blocks.begin() + row.head, row.blocks.end(), address, before);
  erase({size, static_cast<std::uint32_t>(at - row.blocks.begin())});
}

}  // namespace ullage::memory
