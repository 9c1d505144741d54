// PyTorch's CUDA caching allocator as a value: give it the requests and frees of a program, and it makes the segments
// that PyTorch would make, hands out the same blocks of them and runs out of memory at the same request.
//
// Requests go to the smallest free block of their stream and pool that is large enough, of equal ones to the one with
// the lowest address; what is left over goes back. Only where none fits, a segment is taken from the driver, and only
// where the driver has none left, cached memory is given back. Segments lie at ascending addresses here, as the driver
// usually hands them out; replaying a recording, one can say where each lay (place_next_segment).
//
// Source: c10/cuda/CUDACachingAllocator.cpp, read in PyTorch 1.13.1 and 2.6.0; tests/data/allocator holds what that
// of 2.6 itself did. Cost: some ten nanoseconds a request, no allocation of its own once its tables have grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/allocator_settings.h"
#include "memory/free_list.h"
#include "memory/timeline.h"

namespace ullage::memory {

using Stream = std::uint8_t;   // 0: the default stream
using PoolId = std::uint16_t;  // 0: the pool that all share; others belong to a CUDA graph or a torch.cuda.MemPool
using Handle = std::uint32_t;  // of a block in use; kNone: none

inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// What the driver can give.
struct CardMemory {
  std::int64_t total_bytes = kUnlimitedBytes;  // cudaMemGetInfo's total
  std::int64_t taken_bytes = 0;                // by contexts, libraries and other processes
  std::uint64_t first_address = std::uint64_t{1} << 40;
};

// What the allocator asked of the driver.
struct SegmentEvent {
  EventKind kind;  // segment_alloc, segment_free, segment_map or segment_unmap
  std::uint64_t address;
  std::int64_t bytes;
  Stream stream;
  std::uint32_t request;  // how many requests came before
};

// A piece of a segment, for snapshots and for tests.
struct BlockView {
  std::uint64_t address;
  std::int64_t bytes;
  std::int64_t requested_bytes;  // of its last use
  std::uint32_t segment;         // number of the run of blocks it belongs to, ascending
  Handle handle;
  Stream stream;
  PoolId pool;
  bool small;    // of the small pool
  bool in_use;   // handed out, or freed and awaited by a stream
  bool awaited;  // freed and awaited
  bool mapped;   // of expandable segments: backed by memory
  bool expandable;
};

// A piece of a segment that exists before the first request.
struct FoundBlock {
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;
  bool in_use = false;
};

// Why a request failed, in the terms of PyTorch's message.
struct OutOfMemory {
  std::int64_t requested_bytes = 0;
  std::int64_t segment_bytes = 0;  // what was asked of the driver
  std::int64_t free_bytes = 0;     // what the driver has left
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
  std::int64_t private_bytes = 0;  // free, in private pools
  std::int64_t allowed_bytes = 0;  // by memory_fraction; 0: no limit
  friend bool operator==(const OutOfMemory&, const OutOfMemory&) = default;
};

class CachingAllocator {
 public:
  explicit CachingAllocator(const AllocatorSettings& settings = {}, const CardMemory& card = {});

  // A block of at least `requested_bytes` (> 0); kNone where the card has no more, and then last_failure() says why.
  Handle allocate(std::int64_t requested_bytes, Stream stream = 0, PoolId pool = 0);
  // The block may be handed out again at once.
  void free(Handle block);
  // The program is done with the block, but another stream still uses it: it counts as allocated no more, and may be
  // handed out again after `completed`, or when all streams are waited for because memory ran out.
  void free_requested(Handle block);
  void free_completed(Handle block);
  // torch.cuda.empty_cache.
  void empty_cache();
  // While a CUDA graph is being captured nothing is given back to the driver.
  void begin_capture() { ++captures_; }
  void end_capture() { --captures_; }
  // Nobody allocates from the private pool any more: what is free in it may be given back.
  void release_pool(PoolId pool);
  // Where the next segment made by segment_alloc lies, for replaying a recording; used once.
  void place_next_segment(std::uint64_t address) { next_place_ = address; }

  // A segment that was there before, tiled by `blocks`; returns a handle for each of them (free ones: kNone).
  std::vector<Handle> adopt(std::uint64_t address, Stream stream, bool small, std::span<const FoundBlock> blocks);
  // Gives one segment back; false where there is none at that address that is wholly free.
  bool release_segment_at(std::uint64_t address);

  std::int64_t allocated_bytes() const { return allocated_; }  // blocks handed out, with the tails that were not split
  std::int64_t reserved_bytes() const { return reserved_; }
  std::int64_t requested_bytes() const { return requested_; }
  std::int64_t peak_reserved_bytes() const { return peak_reserved_; }  // since the last reset
  void reset_peak_reserved() { peak_reserved_ = reserved_; }
  // Free in segments that no block is in use of: empty_cache would give them back.
  std::int64_t idle_bytes() const;
  std::int64_t block_bytes(Handle block) const { return blocks_[block].bytes; }
  std::int64_t requested_bytes(Handle block) const { return blocks_[block].requested; }
  std::uint64_t block_address(Handle block) const { return blocks_[block].address; }
  std::size_t awaited_blocks() const { return awaited_.size(); }  // freed, and not completed yet
  const std::vector<SegmentEvent>& segment_events() const { return segment_events_; }
  const OutOfMemory& last_failure() const { return failure_; }
  const AllocatorSettings& settings() const { return settings_; }
  const CardMemory& card() const { return card_; }
  // All blocks, by address.
  std::vector<BlockView> blocks() const;

 private:
  enum class Use : std::uint8_t { free, handed_out, awaited };

  struct Block {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::int64_t requested = 0;
    std::uint32_t previous = kNone;  // neighbours in the segment
    std::uint32_t next = kNone;
    std::uint32_t expandable = kNone;  // the expandable segment it belongs to
    std::uint32_t since = 0;           // searches of its pool before it became free
    std::uint32_t row = 0;             // of the free list that it stands in
    std::uint16_t pool = 0;            // index into pools_
    Stream stream = 0;
    Use use = Use::free;
    bool mapped = true;
    bool alive = false;
  };

  struct StreamLists {
    FreeList free;
    std::vector<std::uint32_t> unmapped;  // by address; expandable segments only
  };

  struct Pool {
    PoolId id = 0;
    bool small = false;
    std::uint32_t searches = 0;  // counted only where garbage is collected
    std::vector<StreamLists> streams;
  };

  struct ExpandableSegment {
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::int64_t page_bytes = 0;
  };

  struct Request {
    std::int64_t bytes = 0;  // rounded
    std::int64_t segment = 0;
    std::uint16_t pool = 0;
    Stream stream = 0;
  };

  std::uint16_t pool_index(PoolId id, bool small);
  StreamLists& lists(std::uint16_t pool, Stream stream) {
    std::vector<StreamLists>& streams = pools_[pool].streams;
    if (stream >= streams.size()) streams.resize(std::size_t{stream} + 1);
    return streams[stream];
  }
  // `like` is not one of blocks_, which may move.
  std::uint32_t new_block(const Block& like) {
    const std::uint32_t made = unused_row();
    blocks_[made] = like;
    blocks_[made].alive = true;
    return made;
  }
  std::uint32_t unused_row() {
    if (unused_count_ == 0) add_rows();
    return unused_[--unused_count_];
  }
  void add_rows();
  void forget(std::uint32_t block) {
    blocks_[block].alive = false;
    unused_[unused_count_++] = block;
  }

  Handle allocate_anew(Request request, std::int64_t requested_bytes);
  FreeList::Position find_fit(const Request& request, const FreeList& list);
  FreeList::Position past_expandable(const FreeList& list, FreeList::Position at) const;
  std::int64_t with_room_behind(std::uint32_t block) const;
  bool splits(const Block& block, std::int64_t bytes) const;
  Handle take(std::uint32_t block, std::int64_t requested_bytes);
  std::uint32_t make_room(const Request& request);
  std::uint32_t make_segment(const Request& request);
  void fail(const Request& request, std::int64_t requested_bytes);
  std::int64_t driver_free() const;
  std::int64_t allowed_bytes() const;

  bool is_free(std::uint32_t block) const { return block != kNone && blocks_[block].use == Use::free; }
  bool is_whole(const Block& block) const { return block.previous == kNone && block.next == kNone; }
  bool merges(std::uint32_t block, std::uint32_t other) const;
  // Takes `other`, a neighbour, into `block`; it must have left its list.
  void absorb(std::uint32_t block, std::uint32_t other);
  void put_back(std::uint32_t block);
  void insert_free(FreeList& list, std::uint32_t block) {
    Block& free = blocks_[block];
    if (collects_garbage_) free.since = pools_[free.pool].searches;
    free.row = list.insert(links_.data(), free.bytes, free.address, block);
  }

  void release_all();
  bool release_enough(const Request& request);
  void collect_garbage();
  void release_pool_blocks(std::uint16_t pool);
  void release_segment(std::uint32_t block);

  std::uint32_t expand(const Request& request);
  std::uint32_t find_expandable(const Request& request);
  bool map(std::uint32_t block, std::int64_t bytes);
  void unmap(std::uint32_t block);
  void insert_unmapped(std::uint32_t block);
  void erase_unmapped(std::uint32_t block);
  std::uint32_t split_front(std::uint32_t block, std::int64_t bytes);
  std::uint32_t split_off(std::uint32_t block, std::int64_t from);
  std::int64_t idle_bytes_of(const Block& block) const;

  void record(EventKind kind, std::uint64_t address, std::int64_t bytes, Stream stream) {
    segment_events_.push_back({kind, address, bytes, stream, requests_});
    if (reserved_ > peak_reserved_) peak_reserved_ = reserved_;
  }

  AllocatorSettings settings_;
  CardMemory card_;
  bool rounds_plainly_ = true;
  bool collects_garbage_ = false;
  std::int64_t allocated_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t requested_ = 0;
  std::int64_t peak_reserved_ = 0;
  std::uint32_t requests_ = 0;
  std::int32_t captures_ = 0;
  std::uint64_t next_address_ = 0;
  std::uint64_t next_place_ = kNowhere;
  std::vector<Block> blocks_;
  std::vector<FreeLink> links_;        // of free blocks, by block
  std::vector<std::uint32_t> unused_;  // rows of blocks_, the first unused_count_; as many as those
  std::size_t unused_count_ = 0;
  std::vector<Pool> pools_;  // small and large of each id, in that order
  std::vector<PoolId> released_pools_;
  std::vector<std::uint32_t> awaited_;
  std::vector<ExpandableSegment> expandable_;
  std::vector<SegmentEvent> segment_events_;
  OutOfMemory failure_;
};

}  // namespace ullage::memory
