#include "memory/attribution.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ullage::memory {
namespace {

// What a block takes out of the allocator, without a division where the granularity is a power of two.
class BlockBytes {
 public:
  explicit BlockBytes(const Timeline& timeline)
      : blocks_(timeline.blocks.data()),
        granularity_(timeline.granularity_bytes),
        mask_((granularity_ & (granularity_ - 1)) == 0 ? granularity_ - 1 : -1) {}

  std::int64_t operator()(BlockId id) const {
    const std::int64_t bytes = blocks_[id].requested_bytes;
    return mask_ >= 0 ? (bytes + mask_) & ~mask_ : round_up(bytes, granularity_);
  }

 private:
  const Block* blocks_;
  std::int64_t granularity_;
  std::int64_t mask_;  // -1: not a power of two
};

// Live bytes while events are applied in order. The current component of each block is kept, because a free event
// tells only which block goes.
class Live {
 public:
  explicit Live(const Timeline& timeline)
      : block_bytes_(timeline), component_(timeline.blocks.size(), Component::temporaries) {}

  void apply(const Event& event) {
    if (event.space != Space::device) return;
    if (event.kind == EventKind::alloc) {
      component_[event.block] = event.component;
      add(event.component, block_bytes_(event.block));
    } else if (event.kind == EventKind::free) {
      add(component_[event.block], -block_bytes_(event.block));
    } else if (event.kind == EventKind::retag) {
      const std::int64_t bytes = block_bytes_(event.block);
      add(component_[event.block], -bytes);
      component_[event.block] = event.component;
      add(event.component, bytes);
    }
  }

  std::int64_t bytes() const { return bytes_; }
  Moment moment(std::uint32_t event) const { return {event, bytes_, by_component_}; }
  Component component(BlockId block) const { return component_[block]; }

 private:
  void add(Component component, std::int64_t bytes) {
    by_component_[static_cast<std::size_t>(component)] += bytes;
    bytes_ += bytes;
  }

  BlockBytes block_bytes_;
  std::vector<Component> component_;
  ByComponent by_component_{};
  std::int64_t bytes_ = 0;
};

// The highest moment so far. It is only noted while memory rises and taken down when the rise ends: most new records
// last for one event.
class Summit {
 public:
  void begin(const Live& live, std::uint32_t position) {
    highest_ = live.bytes();
    moment_ = live.moment(position);
  }
  void risen(const Live& live, std::uint32_t position) {
    if (live.bytes() <= highest_) return;
    highest_ = live.bytes();
    rising_ = position;
  }
  // To be called before anything but an allocation is applied.
  void settle(const Live& live) {
    if (rising_ == kNone) return;
    moment_ = live.moment(rising_);
    rising_ = kNone;
  }
  const Moment& moment() const { return moment_; }

 private:
  std::int64_t highest_ = 0;
  std::uint32_t rising_ = kNone;
  Moment moment_;
};

}  // namespace

Sweep sweep(const Timeline& timeline, std::span<const std::uint32_t> events) {
  Sweep out;
  if (events.empty()) return out;
  Live live(timeline);
  std::uint32_t position = 0;
  for (; position < events.front(); ++position) live.apply(timeline.events[position]);
  Summit summit;
  summit.begin(live, position);
  for (const std::uint32_t asked : events) {
    for (; position < asked; ++position) {
      const Event& event = timeline.events[position];
      if (event.kind != EventKind::alloc) summit.settle(live);
      live.apply(event);
      if (event.kind == EventKind::alloc) summit.risen(live, position + 1);
    }
    summit.settle(live);
    out.at.push_back(live.moment(position));
    out.highest.push_back(summit.moment());
  }
  return out;
}

Peak find_peak(const Timeline& timeline, std::uint32_t from, std::uint32_t to) {
  const BlockBytes block_bytes(timeline);
  // What an event adds: nothing unless it takes or gives back memory of the device.
  const auto change = [&](const Event& event) -> std::int64_t {
    if (event.kind > EventKind::free || event.space != Space::device) return 0;
    const std::int64_t bytes = block_bytes(event.block);
    return event.kind == EventKind::alloc ? bytes : -bytes;
  };
  const Event* events = timeline.events.data();
  std::int64_t live = 0;
  for (std::uint32_t i = 0; i < std::min(from, to); ++i) live += change(events[i]);
  Peak peak{from, live};
  for (std::uint32_t i = from; i < to; ++i) {
    live += change(events[i]);
    if (live > peak.bytes) peak = {i + 1, live};
  }
  return peak;
}

Moment moment_at(const Timeline& timeline, std::uint32_t event) {
  const std::uint32_t asked[] = {event};
  return sweep(timeline, asked).at[0];
}

Moment peak_between(const Timeline& timeline, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t asked[] = {from, to};
  return sweep(timeline, asked).highest[1];
}

std::vector<Part> parts_at(const Timeline& timeline, std::uint32_t event) {
  const BlockBytes block_bytes(timeline);
  Live live(timeline);
  std::vector<bool> alive(timeline.blocks.size(), false);
  for (std::uint32_t i = 0; i < event; ++i) {
    const Event& e = timeline.events[i];
    live.apply(e);
    if (e.space != Space::device) continue;
    if (e.kind == EventKind::alloc) alive[e.block] = true;
    if (e.kind == EventKind::free) alive[e.block] = false;
  }
  std::map<std::tuple<std::int16_t, Component, NameId, NameId>, Part> groups;
  for (BlockId id = 0; id < alive.size(); ++id) {
    if (!alive[id]) continue;
    const Block& block = timeline.blocks[id];
    const OpRecord* op = block.op == kNone ? nullptr : &timeline.ops[block.op];
    const NameId name = block.label != 0 || op == nullptr ? block.label : op->name;
    const NameId module = op == nullptr ? NameId{0} : op->module;
    Part& part = groups[{block.layer, live.component(id), name, module}];
    part.component = live.component(id);
    part.layer = block.layer;
    part.name = name;
    part.module = module;
    part.bytes += block_bytes(id);
    ++part.blocks;
  }
  std::vector<Part> out;
  out.reserve(groups.size());
  for (const auto& entry : groups) out.push_back(entry.second);
  std::stable_sort(out.begin(), out.end(), [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  return out;
}

std::vector<std::int64_t> bytes_by_layer(std::span<const Part> parts) {
  std::vector<std::int64_t> out(1, 0);
  for (const Part& part : parts) {
    const auto index = static_cast<std::size_t>(part.layer + 1);
    if (index >= out.size()) out.resize(index + 1, 0);
    out[index] += part.bytes;
  }
  return out;
}

}  // namespace ullage::memory
