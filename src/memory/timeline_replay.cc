#include "memory/timeline_replay.h"

#include <algorithm>
#include <utility>

namespace ullage::memory {
namespace {

// In ascending order of bytes, equal ones as they came. A program has few sizes and many tensors of each, so that
// counting is faster than a sort.
template <class Item, class BytesOf>
void order_by_bytes(std::vector<Item>& items, BytesOf bytes_of) {
  struct Size {
    std::int64_t bytes;
    std::uint32_t next;  // how many there are, then where the next one goes
  };
  std::vector<Size> sizes;
  const auto of = [&](std::int64_t bytes) {
    return std::lower_bound(sizes.begin(), sizes.end(), bytes,
                            [](const Size& a, std::int64_t b) { return a.bytes < b; });
  };
  for (const Item& item : items) {
    const std::int64_t bytes = bytes_of(item);
    const auto at = of(bytes);
    if (at != sizes.end() && at->bytes == bytes) ++at->next;
    else sizes.insert(at, {bytes, 1});
  }
  std::uint32_t before = 0;
  for (Size& size : sizes) before += std::exchange(size.next, before);
  std::vector<Item> out(items.size());
  for (const Item& item : items) out[of(bytes_of(item))->next++] = item;
  items = std::move(out);
}

}  // namespace

std::uint32_t TimelineReplay::run(const Timeline& timeline, std::uint32_t from, std::uint32_t to) {
  handles_.resize(timeline.blocks.size(), kNone);
  Handle* const handles = handles_.data();
  const Block* const blocks = timeline.blocks.data();
  for (std::uint32_t i = from; i < to; ++i) {
    const Event& event = timeline.events[i];
    if (event.space != Space::device) continue;
    if (event.kind == EventKind::alloc) {
      const Handle handle = allocator_.allocate(blocks[event.block].requested_bytes, event.stream);
      if (handle == kNone) return i;
      handles[event.block] = handle;
    } else if (event.kind == EventKind::free) {
      allocator_.free(handles[event.block]);
      handles[event.block] = kNone;
    }
  }
  return to;
}

bool TimelineReplay::carry_over(const Timeline& timeline, std::uint32_t event) {
  std::vector<bool> alive(timeline.blocks.size(), false);
  for (std::uint32_t i = 0; i < event; ++i) {
    const Event& e = timeline.events[i];
    if (e.space != Space::device) continue;
    if (e.kind == EventKind::alloc) alive[e.block] = true;
    if (e.kind == EventKind::free) alive[e.block] = false;
  }
  struct Now {
    std::int64_t bytes;
    Handle handle;
  };
  std::vector<Now> now;
  for (const Handle handle : handles_) {
    if (handle != kNone) now.push_back({allocator_.requested_bytes(handle), handle});
  }
  std::vector<BlockId> then;
  for (BlockId id = 0; id < alive.size(); ++id) {
    if (alive[id]) then.push_back(id);
  }
  const auto equal = [&](const Now& a, BlockId b) { return a.bytes == timeline.blocks[b].requested_bytes; };
  if (std::equal(now.begin(), now.end(), then.begin(), then.end(), equal)) {
    handles_.assign(timeline.blocks.size(), kNone);
    for (std::size_t i = 0; i < now.size(); ++i) handles_[then[i]] = now[i].handle;
    return true;
  }
  order_by_bytes(now, [](const Now& a) { return a.bytes; });
  order_by_bytes(then, [&](BlockId a) { return timeline.blocks[a].requested_bytes; });
  handles_.assign(timeline.blocks.size(), kNone);
  std::vector<BlockId> lacking;
  std::size_t at = 0;
  bool exact = true;
  for (const BlockId id : then) {
    const std::int64_t bytes = timeline.blocks[id].requested_bytes;
    for (; at < now.size() && now[at].bytes < bytes; ++at) {
      allocator_.free(now[at].handle);
      exact = false;
    }
    if (at < now.size() && now[at].bytes == bytes) handles_[id] = now[at++].handle;
    else lacking.push_back(id);
  }
  for (; at < now.size(); ++at) {
    allocator_.free(now[at].handle);
    exact = false;
  }
  for (const BlockId id : lacking) handles_[id] = allocator_.allocate(timeline.blocks[id].requested_bytes);
  return exact && lacking.empty();
}

}  // namespace ullage::memory
