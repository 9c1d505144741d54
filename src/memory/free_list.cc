#include "memory/free_list.h"

#include <algorithm>

namespace ullage::memory {
namespace {

bool before(const FreeBlock& a, std::uint64_t address) { return a.address < address; }

}  // namespace

FreeList::Position FreeList::next(Position at) const {
  const Row& row = rows_[at.row];
  if (at.at + 1 < row.blocks.size()) return {at.row, at.at + 1};
  return first_from(index_of(row.bytes) + 1);
}

FreeList::Position FreeList::previous(Position at) const {
  if (!is_end(at) && at.at > rows_[at.row].head) return {at.row, at.at - 1};
  std::size_t size = is_end(at) ? sizes_.size() : index_of(rows_[at.row].bytes);
  do --size;
  while (rows_[sizes_[size].row].blocks.empty());
  const std::uint32_t row = sizes_[size].row;
  return {row, static_cast<std::uint32_t>(rows_[row].blocks.size() - 1)};
}

std::uint32_t FreeList::row_of(std::int64_t bytes) {
  std::uint32_t& hint = hints_[hint_of(bytes)];
  if (!is_of(hint, bytes)) hint = find_row(bytes);
  return hint;
}

// The row of a size, made if there is none.
std::uint32_t FreeList::find_row(std::int64_t bytes) {
  const std::uint32_t at = index_of(bytes);
  if (at < sizes_.size() && sizes_[at].bytes == bytes) return sizes_[at].row;
  if (spare_rows_.empty()) {
    spare_rows_.push_back(static_cast<std::uint32_t>(rows_.size()));
    rows_.emplace_back();
  }
  const std::uint32_t row = spare_rows_.back();
  spare_rows_.pop_back();
  rows_[row].bytes = bytes;
  sizes_.insert(sizes_.begin() + at, {bytes, row});
  ++empty_rows_;
  return row;
}

void FreeList::sweep() {
  const auto is_empty = [&](const Size& size) { return rows_[size.row].blocks.empty(); };
  for (const Size& size : sizes_) {
    if (!is_empty(size)) continue;
    rows_[size.row].bytes = 0;
    spare_rows_.push_back(size.row);
  }
  sizes_.erase(std::remove_if(sizes_.begin(), sizes_.end(), is_empty), sizes_.end());
  empty_rows_ = 0;
}

std::uint32_t FreeList::insert(std::int64_t bytes, FreeBlock block) {
  const std::uint32_t index = row_of(bytes);
  Row& row = rows_[index];
  if (row.blocks.empty()) --empty_rows_;
  if (row.blocks.empty() || row.blocks.back().address < block.address) row.blocks.push_back(block);
  else insert_inside(row, block);
  return index;
}

void FreeList::insert_inside(Row& row, FreeBlock block) {
  const auto first = row.blocks.begin() + row.head;
  if (row.head > 0 && block.address < first->address) row.blocks[--row.head] = block;
  else row.blocks.insert(std::lower_bound(first, row.blocks.end(), block.address, before), block);
}

void FreeList::erase(Position at) {
  Row& row = rows_[at.row];
  if (at.at != row.head) return erase_inside(row, at.at);
  if (++row.head == row.blocks.size()) empty(row);
}

void FreeList::erase_inside(Row& row, std::uint32_t at) { row.blocks.erase(row.blocks.begin() + at); }

void FreeList::empty(Row& row) {
  row.blocks.clear();
  row.head = 0;
  ++empty_rows_;
  if (sizes_.size() > kFewSizes && empty_rows_ > sizes_.size() / 2) sweep();
}

void FreeList::erase(std::uint32_t row, std::uint64_t address) {
  const std::vector<FreeBlock>& blocks = rows_[row].blocks;
  const auto at = std::lower_bound(blocks.begin() + rows_[row].head, blocks.end(), address, before);
  erase({row, static_cast<std::uint32_t>(at - blocks.begin())});
}

}  // namespace ullage::memory
