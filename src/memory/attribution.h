// Reading a timeline: its peak, what was alive at a moment and for what, phase by phase.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "memory/timeline.h"

namespace ullage::memory {

// What is alive at one moment.
struct Moment {
  std::uint32_t event = 0;  // before events[event]; events.size() is the end
  std::int64_t bytes = 0;
  ByComponent by_component{};
};

// Live device bytes and their components right before events[event].
Moment moment_at(const Timeline& timeline, std::uint32_t event);

// The highest total and where it is reached, within [from, to] (the first of equals), without its components: the
// cheapest question to a timeline.
struct Peak {
  std::uint32_t event = 0;  // before events[event]
  std::int64_t bytes = 0;
};
Peak find_peak(const Timeline& timeline, std::uint32_t from, std::uint32_t to);

// Highest moment within [from, to), i.e. after one of those events (or right before `from`); the first of equals.
// Cost: one pass over the events up to `to`.
Moment peak_between(const Timeline& timeline, std::uint32_t from, std::uint32_t to);

// The moments of several increasing events and, with them, the highest moment from the first to each of them, in one
// pass over the timeline.
struct Sweep {
  std::vector<Moment> at;       // moment at each asked event
  std::vector<Moment> highest;  // highest moment in [asked[0], asked[i]]
};
Sweep sweep(const Timeline& timeline, std::span<const std::uint32_t> events);

// A group of live blocks that share a layer, a component and a name.
struct Part {
  Component component = Component::temporaries;
  std::int16_t layer = kNoLayer;
  NameId name = 0;    // label of the block, or the operator that made it
  NameId module = 0;  // module of that operator
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

// Live blocks before events[event], grouped, largest first (ties by layer, component, name). The bytes add up to
// moment_at(event).bytes.
std::vector<Part> parts_at(const Timeline& timeline, std::uint32_t event);

// Sum of `parts` by layer, index 0 for kNoLayer, then layer 0, 1, …
std::vector<std::int64_t> bytes_by_layer(std::span<const Part> parts);

}  // namespace ullage::memory
