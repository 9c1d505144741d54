#include "memory/attribution.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ullage::memory {
namespace {

// Live bytes while events are applied in order. The current component of each block is kept, because a free event
// tells only which block goes.
class Live {
 public:
  explicit Live(const Timeline& timeline)
      : timeline_(timeline), component_(timeline.blocks.size(), Component::temporaries) {}

  void apply(const Event& event) {
    if (event.space != Space::device) return;
    if (event.kind == EventKind::alloc) {
      component_[event.block] = event.component;
      add(event.component, timeline_.block_bytes(event.block));
    } else if (event.kind == EventKind::free) {
      add(component_[event.block], -timeline_.block_bytes(event.block));
    } else if (event.kind == EventKind::retag) {
      const std::int64_t bytes = timeline_.block_bytes(event.block);
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

  const Timeline& timeline_;
  std::vector<Component> component_;
  ByComponent by_component_{};
  std::int64_t bytes_ = 0;
};

}  // namespace

Sweep sweep(const Timeline& timeline, std::span<const std::uint32_t> events) {
  Sweep out;
  if (events.empty()) return out;
  Live live(timeline);
  Moment highest;
  bool inside = false;
  std::uint32_t position = 0;
  for (const std::uint32_t asked : events) {
    for (; position < asked; ++position) {
      live.apply(timeline.events[position]);
      if (inside && live.bytes() > highest.bytes) highest = live.moment(position + 1);
    }
    if (!inside) {
      inside = true;
      highest = live.moment(position);
    }
    out.at.push_back(live.moment(position));
    out.highest.push_back(highest);
  }
  return out;
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
    part.bytes += timeline.block_bytes(id);
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
