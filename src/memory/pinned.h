// What PyTorch's allocator of pinned memory takes from the host (ATen/core/CachingHostAllocator.h): each request
// rounded up to a power of two, kept when it is freed, and given out again for a request of the same power.
#pragma once

#include "memory/timeline.h"

namespace ullage::memory {

// By the end of the timeline, of its blocks in pinned memory. What is freed counts as free at once: that a copy is
// still under way when the next request comes is not modelled.
std::int64_t pinned_bytes(const Timeline& timeline);

}  // namespace ullage::memory
