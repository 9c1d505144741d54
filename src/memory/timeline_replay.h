// A timeline's requests and frees through an allocator.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/caching_allocator.h"
#include "memory/timeline.h"

namespace ullage::memory {

// Plays stretches of timelines through one allocator. The allocator's state outlives a stretch, so that a step can be
// played again and again, as a training loop does: what it reserves settles within a few steps.
class TimelineReplay {
 public:
  explicit TimelineReplay(CachingAllocator& allocator) : allocator_(allocator) {}

  // Plays events [from, to) of device memory. Returns `to`, or the event whose request failed; what stood is kept.
  std::uint32_t run(const Timeline& timeline, std::uint32_t from, std::uint32_t to);

  // Makes the moment before events[event] of `timeline` the present: what is alive then and is alive now, by size, goes
  // on living under its name there; the rest of now is freed and what then lacks is requested. Returns whether nothing
  // was lacking or left over; a request that fails is lacking.
  bool carry_over(const Timeline& timeline, std::uint32_t event);

  // The allocator's handle of a block of the timeline played last; kNone: not alive.
  Handle handle(BlockId block) const { return block < handles_.size() ? handles_[block] : kNone; }

 private:
  CachingAllocator& allocator_;
  std::vector<Handle> handles_;  // by block of the timeline played last; kNone: not alive
};

}  // namespace ullage::memory
