#include "memory/free_list.h"

#include <algorithm>

namespace ullage::memory {

FreeList::Position FreeList::next(const FreeLink* links, Position at) const {
  const std::uint32_t behind = links[at.block].next;
  if (behind != kNoBlock) return {at.row, behind};
  return first_from(index_of(rows_[at.row].bytes) + 1);
}

FreeList::Position FreeList::previous(const FreeLink* links, Position at) const {
  if (!is_end(at) && links[at.block].previous != kNoBlock) return {at.row, links[at.block].previous};
  std::size_t size = is_end(at) ? sizes_.size() : index_of(rows_[at.row].bytes);
  do --size;
  while (rows_[sizes_[size].row].first == kNoBlock);
  const std::uint32_t row = sizes_[size].row;
  return {row, rows_[row].last};
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
  const auto is_empty = [&](const Size& size) { return rows_[size.row].first == kNoBlock; };
  for (const Size& size : sizes_) {
    if (!is_empty(size)) continue;
    rows_[size.row].bytes = 0;
    spare_rows_.push_back(size.row);
  }
  sizes_.erase(std::remove_if(sizes_.begin(), sizes_.end(), is_empty), sizes_.end());
  empty_rows_ = 0;
}

std::uint32_t FreeList::insert(FreeLink* links, std::int64_t bytes, std::uint64_t address, std::uint32_t block) {
  std::uint32_t& hint = hints_[hint_of(bytes)];
  if (!is_of(hint, bytes)) hint = find_row(bytes);
  const std::uint32_t index = hint;
  Row& row = rows_[index];
  FreeLink& link = links[block];
  link = {address, row.last, kNoBlock};
  if (row.first == kNoBlock) {
    --empty_rows_;
    row.first = row.last = block;
  } else if (links[row.last].address < address) {
    links[row.last].next = block;
    row.last = block;
  } else if (address <= links[row.first].address) {
    link.previous = kNoBlock;
    link.next = row.first;
    links[row.first].previous = block;
    row.first = block;
  } else {
    insert_inside(links, row, block);
  }
  return index;
}

// Above the row's first, not above its last. Walks from the end whose address is nearer: blocks come back mostly close
// to one.
void FreeList::insert_inside(FreeLink* links, const Row& row, std::uint32_t block) {
  const std::uint64_t address = links[block].address;
  std::uint32_t behind = row.first;
  if (address - links[row.first].address <= links[row.last].address - address) {
    while (links[behind].address < address) behind = links[behind].next;
  } else {
    behind = row.last;
    while (links[links[behind].previous].address >= address) behind = links[behind].previous;
  }
  const std::uint32_t before = links[behind].previous;
  links[block].previous = before;
  links[block].next = behind;
  links[before].next = block;
  links[behind].previous = block;
}

}  // namespace ullage::memory
