#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "evidence/recording.h"

namespace ullage::evidence {
namespace {

using memory::FoundBlock;
using memory::Handle;
using memory::kNone;

using Addresses = std::map<std::uint64_t, RecordedBlock>;
using Segments = std::map<std::uint64_t, RecordedSegment>;

std::uint64_t end_of(const RecordedBlock& block) { return block.address + static_cast<std::uint64_t>(block.bytes); }

// Segments that were there before the first event, by undoing what came after.
Segments segments_at_start(const Recording& recording) {
  Segments out;
  for (const RecordedSegment& segment : recording.segments_end) out[segment.address] = segment;
  for (auto event = recording.events.rbegin(); event != recording.events.rend(); ++event) {
    if (event->action == RecordedAction::segment_alloc) out.erase(event->address);
    if (event->action != RecordedAction::segment_free) continue;
    RecordedSegment& segment = out[event->address];
    segment = {event->address, event->bytes, event->bytes <= memory::kSmallSegmentBytes, event->stream, {}};
  }
  return out;
}

// Blocks in use before the first event. The size of one that was freed later is not recorded: `bytes` is its request,
// rounded, to which a tail too small to be split off may belong.
Addresses blocks_at_start(const Recording& recording) {
  Addresses first;
  std::map<std::uint64_t, bool> seen;
  for (const RecordedEvent& event : recording.events) {
    const bool freed = event.action == RecordedAction::free_completed;
    if (!freed && event.action != RecordedAction::alloc) continue;
    if (!seen.emplace(event.address, true).second || !freed) continue;
    first[event.address] = {event.address, memory::rounded_bytes(recording.settings, event.bytes), event.bytes, true};
  }
  for (const RecordedSegment& segment : recording.segments_end) {
    for (const RecordedBlock& block : segment.blocks) {
      if (block.in_use && !seen.contains(block.address)) first[block.address] = block;
    }
  }
  return first;
}

// Whether what lies behind a block is its own, because the allocator would not have split it off.
bool is_tail(const memory::AllocatorSettings& settings, const RecordedSegment& segment, const RecordedBlock& block,
             std::uint64_t bytes) {
  if (segment.small) return bytes < static_cast<std::uint64_t>(memory::kMinBlockBytes);
  return bytes <= static_cast<std::uint64_t>(memory::kSmallBytes) || block.bytes >= settings.max_split_bytes;
}

Expected<std::vector<FoundBlock>> tile(const Recording& recording, const RecordedSegment& segment,
                                       const Addresses& in_use, std::string_view where) {
  std::vector<FoundBlock> out;
  const std::uint64_t end = segment.address + static_cast<std::uint64_t>(segment.bytes);
  std::uint64_t at = segment.address;
  for (auto next = in_use.lower_bound(at); next != in_use.end() && next->first < end; ++next) {
    const RecordedBlock& block = next->second;
    if (block.address < at || end_of(block) > end) {
      return fail(ErrorCode::malformed, std::string(where),
                  fmt::format("two blocks overlap at {}; the recording is not whole", block.address));
    }
    if (block.address > at) out.push_back({static_cast<std::int64_t>(block.address - at), 0, false});
    const auto behind = std::next(next);
    const std::uint64_t limit = behind == in_use.end() ? end : std::min(end, behind->first);
    at = end_of(block);
    if (limit > at && is_tail(recording.settings, segment, block, limit - at)) at = limit;
    out.push_back({static_cast<std::int64_t>(at - block.address), block.requested_bytes, true});
  }
  if (at < end) out.push_back({static_cast<std::int64_t>(end - at), 0, false});
  return out;
}

class Player {
 public:
  Player(const Recording& recording, std::string_view where)
      : recording_(recording), where_(where), allocator_(recording.settings, card_behind(recording)) {}

  Expected<ReplayResult> play() {
    if (auto begun = begin(); !begun) return tl::unexpected<Error>(begun.error());
    for (std::size_t i = 0; i < recording_.events.size(); ++i) {
      if (auto done = apply(i, recording_.events[i]); !done) return tl::unexpected<Error>(done.error());
    }
    // A segment that was recorded last of all, without the request it was for.
    if (pending_) differ(recording_.events.size() - 1, 0, pending_, {});
    out_.events = static_cast<std::int64_t>(recording_.events.size());
    out_.reserved_bytes_end = allocator_.reserved_bytes();
    out_.reserved_bytes_end_recorded = recording_.reserved_bytes_end;
    return out_;
  }

 private:
  using Done = Expected<void>;

  // Segments that only we make must lie apart from all that were recorded.
  static memory::CardMemory card_behind(const Recording& recording) {
    memory::CardMemory card;
    for (const RecordedSegment& segment : recording.segments_end)
      card.first_address = std::max(card.first_address, segment.address + static_cast<std::uint64_t>(segment.bytes));
    for (const RecordedEvent& event : recording.events)
      card.first_address = std::max(card.first_address, event.address + static_cast<std::uint64_t>(event.bytes));
    return card;
  }

  Done begin() {
    const Addresses in_use = blocks_at_start(recording_);
    std::size_t placed = 0;
    for (const auto& [address, segment] : segments_at_start(recording_)) {
      if (auto apart = add_segment(address, segment.bytes, where_); !apart) return apart;
      const auto blocks = tile(recording_, segment, in_use, where_);
      if (!blocks) return tl::unexpected<Error>(blocks.error());
      const std::vector<Handle> handles = allocator_.adopt(address, segment.stream, segment.small, *blocks);
      std::uint64_t at = address;
      for (std::size_t i = 0; i < handles.size(); ++i) {
        if (handles[i] != kNone) handles_[at] = handles[i];
        placed += handles[i] != kNone ? 1 : 0;
        at += static_cast<std::uint64_t>((*blocks)[i].bytes);
      }
    }
    if (placed == in_use.size()) return {};
    return fail(ErrorCode::malformed, std::string(where_),
                fmt::format("{} blocks lie in no segment; the recording is not whole", in_use.size() - placed));
  }

  // Segments of the recording never overlap; a file may say what it likes.
  Done add_segment(std::uint64_t address, std::int64_t bytes, std::string_view where) {
    const auto next = segments_.lower_bound(address);
    const bool below = next != segments_.end() && address + static_cast<std::uint64_t>(bytes) > next->first;
    const bool above = next != segments_.begin() &&
                       std::prev(next)->first + static_cast<std::uint64_t>(std::prev(next)->second) > address;
    if (below || above || bytes > memory::kMostRequestBytes - reserved_) {
      return fail(ErrorCode::malformed, std::string(where),
                  fmt::format("the segment at {} overlaps another; the recording is not whole", address));
    }
    reserved_ += bytes;
    segments_[address] = bytes;
    return {};
  }

  void drop_segment(std::uint64_t address) {
    const auto found = segments_.find(address);
    if (found == segments_.end()) return;
    reserved_ -= found->second;
    segments_.erase(found);
  }

  Done apply(std::size_t at, const RecordedEvent& event) {
    switch (event.action) {
      case RecordedAction::segment_alloc: return make_segment(at, event);
      case RecordedAction::segment_free:
        drop_segment(event.address);
        if (!allocator_.release_segment_at(event.address)) differ(at, 0, event.bytes, {}, true);
        return {};
      case RecordedAction::alloc: request(at, event); return {};
      case RecordedAction::free_requested:
      case RecordedAction::free_completed: return release(at, event);
    }
    return {};
  }

  // Where it lies matters only as long as we have the same segments; afterwards ours lie behind all that were recorded.
  Done make_segment(std::size_t at, const RecordedEvent& event) {
    ++out_.segments_recorded;
    if (pending_) differ(at, 0, pending_, {});
    pending_ = event.bytes;
    if (auto apart = add_segment(event.address, event.bytes, fmt::format("{}: event {}", where_, at)); !apart)
      return apart;
    if (!out_.first_difference) allocator_.place_next_segment(event.address);
    return {};
  }

  void request(std::size_t at, const RecordedEvent& event) {
    const std::int64_t reserved = allocator_.reserved_bytes();
    const Handle handle = allocator_.allocate(event.bytes, event.stream);
    std::optional<std::int64_t> made;
    if (allocator_.reserved_bytes() != reserved) made = allocator_.reserved_bytes() - reserved;
    if (made) ++out_.segments_made;
    if (made != pending_) differ(at, event.bytes, pending_, made);
    if (!made) allocator_.place_next_segment(memory::kNowhere);
    pending_.reset();
    if (handle == kNone) return;
    if (allocator_.block_address(handle) != event.address) ++out_.blocks_elsewhere;
    handles_[event.address] = handle;
  }

  Done release(std::size_t at, const RecordedEvent& event) {
    const auto found = handles_.find(event.address);
    if (found == handles_.end()) {
      // A free that was requested before the recording began is completed in it, and its request is not there.
      if (event.action == RecordedAction::free_requested) return {};
      return fail(ErrorCode::malformed, fmt::format("{}: event {}", where_, at),
                  fmt::format("frees {}, where nothing is; the recording is not whole", event.address));
    }
    const bool completes = event.action == RecordedAction::free_completed;
    if (completes && requested_.erase(event.address) > 0) allocator_.free_completed(found->second);
    else if (completes) allocator_.free(found->second);
    else if (requested_.emplace(event.address, true).second) allocator_.free_requested(found->second);
    if (completes) handles_.erase(found);
    return {};
  }

  void differ(std::size_t at, std::int64_t requested, std::optional<std::int64_t> recorded,
              std::optional<std::int64_t> made, bool freed = false) {
    if (!out_.first_difference) out_.first_difference = ReplayDifference{at, requested, recorded, made, freed};
  }

  const Recording& recording_;
  std::string_view where_;
  memory::CachingAllocator allocator_;
  std::map<std::uint64_t, Handle> handles_;         // by recorded address
  std::map<std::uint64_t, bool> requested_;         // frees that were requested and not completed
  std::optional<std::int64_t> pending_;             // the segment recorded right before
  std::map<std::uint64_t, std::int64_t> segments_;  // of the recording, by address
  std::int64_t reserved_ = 0;                       // their sum
  ReplayResult out_;
};

}  // namespace

Expected<ReplayResult> replay(const Recording& recording, std::string_view where) {
  return Player(recording, where).play();
}

}  // namespace ullage::evidence
