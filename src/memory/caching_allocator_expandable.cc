// Expandable segments of the caching allocator: address space that is backed by memory page by page.
#include <algorithm>

#include "memory/caching_allocator.h"

namespace ullage::memory {
namespace {

// The address space of a segment is this share larger than the card, so that pages can move to its end.
constexpr std::int64_t kSpare = 8;
// Of a card without limit.
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 45;

}  // namespace

// With expandable segments a block counts as large as it can grow, so the search goes on while the next one is smaller
// in that sense. Where they are switched off by now, they are passed over.
FreeList::Position CachingAllocator::past_expandable(const FreeList& list, FreeList::Position at) const {
  const auto expandable = [&] { return blocks_[list.block(at)].expandable != kNone; };
  if (!settings_.expandable_segments) {
    while (!list.is_end(at) && expandable()) at = list.next(links_.data(), at);
    return at;
  }
  while (expandable()) {
    const FreeList::Position next = list.next(links_.data(), at);
    if (list.is_end(next) || with_room_behind(list.block(next)) >= with_room_behind(list.block(at))) break;
    at = next;
  }
  return at;
}

std::int64_t CachingAllocator::with_room_behind(std::uint32_t block) const {
  const Block& of = blocks_[block];
  return of.bytes + (of.next != kNone && !blocks_[of.next].mapped ? blocks_[of.next].bytes : 0);
}

// The lowest run of free and unmapped blocks that has room, in a new segment if there is none.
std::uint32_t CachingAllocator::find_expandable(const Request& request) {
  for (std::uint32_t start : lists(request.pool, request.stream).unmapped) {
    if (is_free(blocks_[start].previous)) start = blocks_[start].previous;
    std::int64_t room = 0;
    for (std::uint32_t b = start; room < request.bytes && is_free(b); b = blocks_[b].next) room += blocks_[b].bytes;
    if (room >= request.bytes) return start;
  }
  ExpandableSegment segment;
  segment.page_bytes = pools_[request.pool].small ? kSmallSegmentBytes : settings_.large_segment_bytes;
  const std::int64_t total = card_.total_bytes;
  const std::int64_t space = total == kUnlimitedBytes ? kAddressSpace : total + total / kSpare;
  segment.bytes = round_up(space, segment.page_bytes);
  segment.address = next_address_;
  next_address_ += static_cast<std::uint64_t>(segment.bytes);
  Block all;
  all.address = segment.address;
  all.bytes = segment.bytes;
  all.pool = request.pool;
  all.stream = request.stream;
  all.expandable = static_cast<std::uint32_t>(expandable_.size());
  all.mapped = false;
  expandable_.push_back(segment);
  const std::uint32_t made = new_block(all);
  insert_unmapped(made);
  return made;
}

std::uint32_t CachingAllocator::expand(const Request& request) {
  std::uint32_t block = find_expandable(request);
  if (!blocks_[block].mapped && !map(block, std::min(blocks_[block].bytes, request.bytes))) return kNone;
  while (blocks_[block].bytes < request.bytes) {
    const std::uint32_t behind = blocks_[block].next;
    const std::int64_t missing = request.bytes - blocks_[block].bytes;
    if (!map(behind, std::min(missing, blocks_[behind].bytes))) return kNone;
    block = behind;  // which took in the one before
  }
  const Block& found = blocks_[block];
  lists(request.pool, request.stream).free.erase(links_.data(), found.row, block);
  return block;
}

// Backs the first pages of an unmapped block and joins them with the free blocks beside.
bool CachingAllocator::map(std::uint32_t block, std::int64_t bytes) {
  const std::int64_t page = expandable_[blocks_[block].expandable].page_bytes;
  const std::int64_t mapped = round_up(bytes, page);
  if (mapped > driver_free()) return false;
  erase_unmapped(block);
  if (mapped < blocks_[block].bytes) insert_unmapped(split_off(block, mapped));
  blocks_[block].mapped = true;
  reserved_ += mapped;
  record(EventKind::segment_map, blocks_[block].address, mapped, blocks_[block].stream);
  put_back(block);
  return true;
}

// Takes the whole pages inside of a free block away from it.
void CachingAllocator::unmap(std::uint32_t block) {
  const ExpandableSegment& segment = expandable_[blocks_[block].expandable];
  const std::int64_t page = segment.page_bytes;
  const auto offset = static_cast<std::int64_t>(blocks_[block].address - segment.address);
  const std::int64_t from = round_up(offset, page);
  const std::int64_t to = (offset + blocks_[block].bytes) / page * page;
  if (from >= to) return;
  FreeList& list = lists(blocks_[block].pool, blocks_[block].stream).free;
  list.erase(links_.data(), blocks_[block].row, block);
  if (offset + blocks_[block].bytes > to) insert_free(list, split_off(block, to - offset));
  if (from > offset) {
    const std::uint32_t pages = split_off(block, from - offset);
    insert_free(list, block);
    block = pages;
  }
  blocks_[block].mapped = false;
  reserved_ -= to - from;
  record(EventKind::segment_unmap, blocks_[block].address, to - from, blocks_[block].stream);
  for (const std::uint32_t other : {blocks_[block].previous, blocks_[block].next}) {
    if (other == kNone || !merges(block, other)) continue;
    erase_unmapped(other);
    absorb(block, other);
  }
  if (is_whole(blocks_[block])) forget(block);
  else insert_unmapped(block);
}

void CachingAllocator::insert_unmapped(std::uint32_t block) {
  blocks_[block].mapped = false;
  std::vector<std::uint32_t>& list = lists(blocks_[block].pool, blocks_[block].stream).unmapped;
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return blocks_[a].address < blocks_[b].address; };
  list.insert(std::lower_bound(list.begin(), list.end(), block, before), block);
}

void CachingAllocator::erase_unmapped(std::uint32_t block) {
  std::vector<std::uint32_t>& list = lists(blocks_[block].pool, blocks_[block].stream).unmapped;
  list.erase(std::find(list.begin(), list.end(), block));
}

}  // namespace ullage::memory
