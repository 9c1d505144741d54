// Giving memory back to the driver: the part of the caching allocator that runs when a card is full.
#include <algorithm>

#include "memory/caching_allocator.h"

namespace ullage::memory {

void CachingAllocator::release_segment(std::uint32_t block) {
  const Block& whole = blocks_[block];
  lists(whole.pool, whole.stream).free.erase(links_.data(), whole.row, block);
  reserved_ -= whole.bytes;
  record(EventKind::segment_free, whole.address, whole.bytes, whole.stream);
  forget(block);
}

// Whole segments at once, pages of expandable ones after all lists were gone through, as unmapping changes them.
void CachingAllocator::release_pool_blocks(std::uint16_t pool) {
  std::vector<std::uint32_t> whole;
  std::vector<std::uint32_t> pages;
  for (const StreamLists& of_stream : pools_[pool].streams) {
    of_stream.free.for_each(links_.data(), [&](std::uint32_t block) {
      if (blocks_[block].expandable != kNone) pages.push_back(block);
      else if (is_whole(blocks_[block])) whole.push_back(block);
    });
  }
  for (const std::uint32_t block : whole) release_segment(block);
  for (const std::uint32_t block : pages) unmap(block);
}

void CachingAllocator::release_all() {
  // All streams are waited for.
  std::vector<std::uint32_t> done;
  done.swap(awaited_);
  for (const std::uint32_t block : done) {
    blocks_[block].use = Use::free;
    put_back(block);
  }
  release_pool_blocks(1);
  release_pool_blocks(0);
  for (const PoolId id : released_pools_) {
    const std::uint16_t small = pool_index(id, true);
    release_pool_blocks(small);
    release_pool_blocks(static_cast<std::uint16_t>(small + 1));
  }
}

bool CachingAllocator::release_segment_at(std::uint64_t address) {
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const bool here = block.alive && block.address == address && block.expandable == kNone;
    if (!here || block.use != Use::free || !is_whole(block)) continue;
    release_segment(i);
    return true;
  }
  return false;
}

void CachingAllocator::empty_cache() { release_all(); }

void CachingAllocator::release_pool(PoolId pool) { released_pools_.push_back(pool); }

// Only where blocks have a size from which on they are not split: one such block that is large enough, or the largest
// ones until they are together.
bool CachingAllocator::release_enough(const Request& request) {
  if (settings_.max_split_bytes == kUnlimitedBytes) return false;
  const FreeList& list = lists(request.pool, request.stream).free;
  const std::int64_t wanted = std::max(request.bytes, settings_.max_split_bytes);
  FreeList::Position at = list.at_least(wanted);
  if (!list.is_end(at) && blocks_[list.block(at)].expandable == kNone) {
    release_segment(list.block(at));
    return true;
  }
  std::vector<std::uint32_t> largest;
  std::int64_t released = 0;
  while (released < wanted && !(at == list.begin())) {
    at = list.previous(links_.data(), at);
    if (list.bytes(at) < settings_.max_split_bytes) break;
    if (blocks_[list.block(at)].expandable != kNone) continue;
    released += list.bytes(at);
    largest.push_back(list.block(at));
  }
  for (const std::uint32_t block : largest) release_segment(block);
  return released >= wanted;
}

// Whole segments of the large pool that were free for longer than the average, until enough of the allowed memory is
// left.
void CachingAllocator::collect_garbage() {
  const std::int64_t allowed = allowed_bytes();
  if (allowed == kUnlimitedBytes) return;
  const auto threshold =
      static_cast<std::int64_t>(settings_.garbage_collection_threshold * static_cast<double>(allowed));
  if (reserved_ <= threshold) return;
  const std::int64_t wanted = reserved_ - threshold;
  const Pool& pool = pools_[1];
  std::vector<std::uint32_t> candidates;
  std::uint64_t total_age = 0;
  for (const StreamLists& of_stream : pool.streams) {
    of_stream.free.for_each(links_.data(), [&](std::uint32_t block) {
      if (!is_whole(blocks_[block])) return;
      candidates.push_back(block);
      total_age += pool.searches - blocks_[block].since;
    });
  }
  std::int64_t released = 0;
  bool progress = true;
  while (released < wanted && progress && !candidates.empty()) {
    const double average = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    progress = false;
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t block : candidates) {
      const std::uint32_t age = pool.searches - blocks_[block].since;
      if (blocks_[block].expandable != kNone || static_cast<double>(age) < average) {
        kept.push_back(block);
        continue;
      }
      progress = true;
      released += blocks_[block].bytes;
      total_age -= age;
      release_segment(block);
    }
    candidates.swap(kept);
  }
}

}  // namespace ullage::memory
