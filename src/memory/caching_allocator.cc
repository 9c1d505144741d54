#include "memory/caching_allocator.h"

#include <algorithm>

namespace ullage::memory {

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, const CardMemory& card)
    : settings_(settings),
      card_(card),
      collects_garbage_(settings.memory_fraction > 0 && settings.garbage_collection_threshold > 0),
      next_address_(card.first_address) {
  for (const std::int64_t divisions : settings_.roundup_divisions)
    rounds_plainly_ = rounds_plainly_ && divisions < std::max<std::int64_t>(settings_.fewest_divisions, 1);
  pool_index(0, true);
}

// Pools come in pairs, the small one first.
std::uint16_t CachingAllocator::pool_index(PoolId id, bool small) {
  std::size_t at = 0;
  while (at < pools_.size() && pools_[at].id != id) at += 2;
  if (at == pools_.size()) {
    for (const bool of_small : {true, false}) {
      pools_.push_back({});
      pools_.back().id = id;
      pools_.back().small = of_small;
      pools_.back().streams.resize(1);
    }
  }
  return static_cast<std::uint16_t>(small ? at : at + 1);
}

// Twice as many as before, handed out in order.
void CachingAllocator::add_rows() {
  const std::size_t had = blocks_.size();
  const std::size_t now = std::max<std::size_t>(64, 2 * had);
  blocks_.resize(now);
  links_.resize(now);
  unused_.resize(now);
  for (std::size_t row = now; row-- > had;) unused_[unused_count_++] = static_cast<std::uint32_t>(row);
}

Handle CachingAllocator::allocate(std::int64_t requested_bytes, Stream stream, PoolId pool) {
  Request request;
  request.bytes =
      rounds_plainly_ ? round_up(requested_bytes, kMinBlockBytes) : rounded_bytes(settings_, requested_bytes);
  const bool small = request.bytes <= kSmallBytes;
  request.pool = pool == 0 ? static_cast<std::uint16_t>(small ? 0 : 1) : pool_index(pool, small);
  request.stream = stream;
  FreeList& list = lists(request.pool, stream).free;
  const FreeList::Position fit = find_fit(request, list);
  if (!list.is_end(fit)) {
    const std::uint32_t block = list.block(fit);
    list.erase(links_.data(), fit.row, block);
    if (!splits(blocks_[block], request.bytes)) return take(block, requested_bytes);
    const std::uint32_t front = split_front(block, request.bytes);
    insert_free(list, block);
    return take(front, requested_bytes);
  }
  return allocate_anew(request, requested_bytes);
}

// What no free block serves.
Handle CachingAllocator::allocate_anew(Request request, std::int64_t requested_bytes) {
  request.segment = segment_bytes(settings_, request.bytes);
  const std::uint32_t block = make_room(request);
  if (block == kNone) {
    fail(request, requested_bytes);
    return kNone;
  }
  if (splits(blocks_[block], request.bytes))
    insert_free(lists(request.pool, request.stream).free, split_off(block, request.bytes));
  return take(block, requested_bytes);
}

// The free block to use; the list's end where none will do.
FreeList::Position CachingAllocator::find_fit(const Request& request, const FreeList& list) {
  if (collects_garbage_) ++pools_[request.pool].searches;
  FreeList::Position at = list.at_least(request.bytes);
  if (list.is_end(at)) return at;
  if (!expandable_.empty() && blocks_[list.block(at)].expandable != kNone) {
    at = past_expandable(list, at);
    if (list.is_end(at)) return at;
  }
  const std::int64_t bytes = list.bytes(at);
  if (request.bytes < settings_.max_split_bytes) return bytes >= settings_.max_split_bytes ? list.end() : at;
  return bytes >= add_saturated(request.bytes, settings_.max_non_split_rounding_bytes) ? list.end() : at;
}

bool CachingAllocator::splits(const Block& block, std::int64_t bytes) const {
  const std::int64_t left = block.bytes - bytes;
  const bool small = block.pool % 2 == 0;
  if (small || settings_.expandable_segments) return left >= kMinBlockBytes;
  return bytes < settings_.max_split_bytes && left > kSmallBytes;
}

Handle CachingAllocator::take(std::uint32_t block, std::int64_t requested_bytes) {
  Block& taken = blocks_[block];
  taken.use = Use::handed_out;
  taken.requested = requested_bytes;
  allocated_ += taken.bytes;
  requested_ += requested_bytes;
  ++requests_;
  return block;
}

// From the driver, after giving back what it takes.
std::uint32_t CachingAllocator::make_room(const Request& request) {
  if (collects_garbage_) collect_garbage();
  std::uint32_t block = make_segment(request);
  if (block == kNone && release_enough(request)) block = make_segment(request);
  if (block == kNone && captures_ == 0) {
    release_all();
    block = make_segment(request);
  }
  return block;
}

std::int64_t CachingAllocator::driver_free() const { return card_.total_bytes - card_.taken_bytes - reserved_; }

std::int64_t CachingAllocator::allowed_bytes() const {
  if (settings_.memory_fraction <= 0 || card_.total_bytes == kUnlimitedBytes) return kUnlimitedBytes;
  return static_cast<std::int64_t>(settings_.memory_fraction * static_cast<double>(card_.total_bytes));
}

std::uint32_t CachingAllocator::make_segment(const Request& request) {
  if (request.segment > allowed_bytes() - reserved_) return kNone;
  if (settings_.expandable_segments) return expand(request);
  if (request.segment > driver_free()) return kNone;
  Block made;
  made.address = next_address_;
  if (next_place_ != kNowhere) {
    made.address = next_place_;
    next_place_ = kNowhere;
  } else {
    next_address_ += static_cast<std::uint64_t>(request.segment);
  }
  made.bytes = request.segment;
  made.pool = request.pool;
  made.stream = request.stream;
  reserved_ += request.segment;
  record(EventKind::segment_alloc, made.address, made.bytes, made.stream);
  return new_block(made);
}

void CachingAllocator::fail(const Request& request, std::int64_t requested_bytes) {
  failure_ = {};
  failure_.requested_bytes = requested_bytes;
  failure_.segment_bytes = request.segment;
  failure_.free_bytes = std::max<std::int64_t>(driver_free(), 0);
  failure_.allocated_bytes = allocated_;
  failure_.reserved_bytes = reserved_;
  if (settings_.memory_fraction > 0) failure_.allowed_bytes = allowed_bytes();
  for (const Pool& pool : pools_) {
    if (pool.id == 0) continue;
    for (const StreamLists& of_stream : pool.streams)
      of_stream.free.for_each(links_.data(),
                              [&](std::uint32_t block) { failure_.private_bytes += blocks_[block].bytes; });
  }
}

// The first `bytes` of a block as a block of its own.
std::uint32_t CachingAllocator::split_front(std::uint32_t block, std::int64_t bytes) {
  const std::uint32_t made = unused_row();
  Block& rest = blocks_[block];
  Block& front = blocks_[made];
  front = rest;
  front.bytes = bytes;
  front.next = block;
  if (rest.previous != kNone) blocks_[rest.previous].next = made;
  rest.previous = made;
  rest.address += static_cast<std::uint64_t>(bytes);
  rest.bytes -= bytes;
  return made;
}

// The part of a block behind its first `from` bytes as a block of its own.
std::uint32_t CachingAllocator::split_off(std::uint32_t block, std::int64_t from) {
  Block rest = blocks_[block];
  rest.address += static_cast<std::uint64_t>(from);
  rest.bytes -= from;
  rest.previous = block;
  const std::uint32_t made = new_block(rest);
  blocks_[block].bytes = from;
  blocks_[block].next = made;
  if (rest.next != kNone) blocks_[rest.next].previous = made;
  return made;
}

void CachingAllocator::free(Handle block) {
  Block& freed = blocks_[block];
  allocated_ -= freed.bytes;
  requested_ -= freed.requested;
  freed.use = Use::free;
  put_back(block);
}

void CachingAllocator::free_requested(Handle block) {
  Block& freed = blocks_[block];
  allocated_ -= freed.bytes;
  requested_ -= freed.requested;
  freed.use = Use::awaited;
  awaited_.push_back(block);
}

void CachingAllocator::free_completed(Handle block) {
  const auto at = std::find(awaited_.begin(), awaited_.end(), block);
  if (at == awaited_.end()) return;  // all streams were waited for meanwhile
  awaited_.erase(at);
  blocks_[block].use = Use::free;
  put_back(block);
}

bool CachingAllocator::merges(std::uint32_t block, std::uint32_t other) const {
  return is_free(other) && blocks_[other].mapped == blocks_[block].mapped;
}

void CachingAllocator::absorb(std::uint32_t block, std::uint32_t other) {
  Block& into = blocks_[block];
  const Block& gone = blocks_[other];
  if (into.previous == other) {
    into.address = gone.address;
    into.previous = gone.previous;
    if (into.previous != kNone) blocks_[into.previous].next = block;
  } else {
    into.next = gone.next;
    if (into.next != kNone) blocks_[into.next].previous = block;
  }
  into.bytes += gone.bytes;
  forget(other);
}

// A block nobody uses any more, joined with its free neighbours, into its list.
void CachingAllocator::put_back(std::uint32_t block) {
  FreeList& list = lists(blocks_[block].pool, blocks_[block].stream).free;
  for (const std::uint32_t other : {blocks_[block].previous, blocks_[block].next}) {
    if (!merges(block, other)) continue;
    list.erase(links_.data(), blocks_[other].row, other);
    absorb(block, other);
  }
  insert_free(list, block);
}

std::vector<Handle> CachingAllocator::adopt(std::uint64_t address, Stream stream, bool small,
                                            std::span<const FoundBlock> blocks) {
  std::vector<Handle> out;
  Block piece;
  piece.address = address;
  piece.stream = stream;
  piece.pool = pool_index(0, small);
  std::uint32_t before = kNone;
  for (const FoundBlock& found : blocks) {
    piece.bytes = found.bytes;
    piece.previous = before;
    const std::uint32_t made = new_block(piece);
    if (before != kNone) blocks_[before].next = made;
    before = made;
    piece.address += static_cast<std::uint64_t>(found.bytes);
    reserved_ += found.bytes;
    if (found.in_use) {
      blocks_[made].use = Use::handed_out;
      blocks_[made].requested = found.requested_bytes;
      allocated_ += found.bytes;
      requested_ += found.requested_bytes;
    } else {
      insert_free(lists(piece.pool, stream).free, made);
    }
    out.push_back(found.in_use ? made : kNone);
  }
  return out;
}

std::int64_t CachingAllocator::idle_bytes() const {
  std::int64_t out = 0;
  for (const Pool& pool : pools_) {
    for (const StreamLists& of_stream : pool.streams) {
      of_stream.free.for_each(links_.data(), [&](std::uint32_t block) { out += idle_bytes_of(blocks_[block]); });
    }
  }
  return out;
}

// The whole segment, or the whole pages of an expandable one, within a free block.
std::int64_t CachingAllocator::idle_bytes_of(const Block& block) const {
  if (block.expandable == kNone) return is_whole(block) ? block.bytes : 0;
  const ExpandableSegment& segment = expandable_[block.expandable];
  const auto offset = static_cast<std::int64_t>(block.address - segment.address);
  const std::int64_t from = round_up(offset, segment.page_bytes);
  const std::int64_t to = (offset + block.bytes) / segment.page_bytes * segment.page_bytes;
  return std::max<std::int64_t>(to - from, 0);
}

std::vector<BlockView> CachingAllocator::blocks() const {
  std::vector<BlockView> out;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (!block.alive) continue;
    const Pool& pool = pools_[block.pool];
    out.push_back({block.address, block.bytes, block.requested, 0, i, block.stream, pool.id, pool.small,
                   block.use != Use::free, block.use == Use::awaited, block.mapped, block.expandable != kNone});
  }
  std::sort(out.begin(), out.end(), [](const BlockView& a, const BlockView& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < out.size(); ++i) {
    const bool same = blocks_[out[i].handle].previous == out[i - 1].handle;
    out[i].segment = out[i - 1].segment + (same ? 0 : 1);
  }
  return out;
}

}  // namespace ullage::memory
