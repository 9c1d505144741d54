#include "memory/attribution.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace ullage::memory {
namespace {

// Live bytes while events are applied in order. The current component of each block is kept, because a free event
// tells only which block goes.
class Live {
 public:
  Live(const Timeline& timeline, const std::vector<std::int64_t>& block_bytes)
      : block_bytes_(block_bytes), component_(timeline.blocks.size(), Component::temporaries) {}

  void apply(const Event& event) {
    if (event.space != Space::device) return;
    if (event.kind == EventKind::alloc) {
      component_[event.block] = event.component;
      add(event.component, block_bytes_[event.block]);
    } else if (event.kind == EventKind::free) {
      add(component_[event.block], -block_bytes_[event.block]);
    } else if (event.kind == EventKind::retag) {
      const std::int64_t bytes = block_bytes_[event.block];
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

  const std::vector<std::int64_t>& block_bytes_;
  std::vector<Component> component_;
  ByComponent by_component_{};
  std::int64_t bytes_ = 0;
};

}  // namespace

namespace {

std::vector<std::int64_t> rounded_bytes(const Timeline& timeline) {
  std::vector<std::int64_t> out(timeline.blocks.size());
  const std::int64_t granularity = timeline.granularity_bytes;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = round_up(timeline.blocks[i].requested_bytes, granularity);
  return out;
}

// Where the highest moments lie: one pass that knows nothing of components.
std::vector<std::uint32_t> highest_moments(const Timeline& timeline, const std::vector<std::int64_t>& block_bytes,
                                           std::span<const std::uint32_t> asked) {
  std::vector<std::uint32_t> out;
  std::int64_t live = 0;
  std::int64_t highest = 0;
  std::uint32_t where = asked.front();
  std::uint32_t position = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    for (; position < asked[i]; ++position) {
      const Event& event = timeline.events[position];
      if (event.space != Space::device) continue;
      if (event.kind == EventKind::alloc) live += block_bytes[event.block];
      else if (event.kind == EventKind::free) live -= block_bytes[event.block];
      if (i > 0 && live > highest) {
        highest = live;
        where = position + 1;
      }
    }
    if (i == 0) highest = live;
    out.push_back(where);
  }
  return out;
}

}  // namespace

Sweep sweep(const Timeline& timeline, std::span<const std::uint32_t> events) {
  Sweep out;
  if (events.empty()) return out;
  const std::vector<std::int64_t> block_bytes = rounded_bytes(timeline);
  const std::vector<std::uint32_t> peaks = highest_moments(timeline, block_bytes, events);
  out.at.resize(events.size());
  out.highest.resize(events.size());
  // Both kinds of moments come in order, so one more pass serves them all.
  std::vector<std::pair<std::uint32_t, Moment*>> wanted;
  for (std::size_t i = 0; i < events.size(); ++i) {
    wanted.emplace_back(events[i], &out.at[i]);
    wanted.emplace_back(peaks[i], &out.highest[i]);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Live live(timeline, block_bytes);
  std::uint32_t position = 0;
  for (const auto& [event, moment] : wanted) {
    for (; position < event; ++position) live.apply(timeline.events[position]);
    *moment = live.moment(event);
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
  const std::vector<std::int64_t> block_bytes = rounded_bytes(timeline);
  Live live(timeline, block_bytes);
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
    part.bytes += block_bytes[id];
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
