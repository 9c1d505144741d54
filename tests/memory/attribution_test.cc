// Reading a timeline that was written by hand.
#include "memory/attribution.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "memory/footprint.h"

namespace ullage::memory {
namespace {

// Two layers: a parameter of 1000 bytes each; an activation of 300 that begins as a temporary; a temporary of 5; what
// is on the host does not count. Sizes are rounded up to 512.
Timeline by_hand() {
  Timeline t;
  t.granularity_bytes = 512;
  const NameId weight = t.names.intern("weight");
  const NameId mm = t.names.intern("mm");
  const NameId module = t.names.intern("q_proj");
  t.blocks = {
      {1000, kNone, weight, 0}, {1000, kNone, weight, 1}, {300, 0, 0, 1}, {5, 0, 0, 1}, {9999, kNone, 0, kNoLayer}};
  t.ops = {{60, 40, 2, mm, module, 1, Phase::forward}};
  t.events = {
      {0, EventKind::alloc, Component::parameters, Space::device, 0},
      {1, EventKind::alloc, Component::parameters, Space::device, 0},
      {2, EventKind::alloc, Component::temporaries, Space::device, 0},
      {4, EventKind::alloc, Component::inputs, Space::host, 0},
      {3, EventKind::alloc, Component::temporaries, Space::device, 0},
      {2, EventKind::retag, Component::activations, Space::device, 0},
      {3, EventKind::free, Component::temporaries, Space::device, 0},
      {2, EventKind::free, Component::activations, Space::device, 0},
      {4, EventKind::free, Component::inputs, Space::host, 0},
  };
  t.marks = {{t.names.intern("after_forward"), 7}};
  return t;
}

std::int64_t of(const Moment& moment, Component component) {
  return moment.by_component[static_cast<std::size_t>(component)];
}

TEST(MomentAt, IsRightBeforeTheEvent) {
  const Timeline t = by_hand();
  const std::int64_t expected[] = {0, 1024, 2048, 2560, 2560, 3072, 3072, 2560, 2048, 2048};
  for (std::uint32_t i = 0; i <= t.events.size(); ++i) EXPECT_EQ(moment_at(t, i).bytes, expected[i]) << i;
}

TEST(MomentAt, FollowsChangesOfPurpose) {
  const Timeline t = by_hand();
  EXPECT_EQ(of(moment_at(t, 5), Component::temporaries), 1024);
  EXPECT_EQ(of(moment_at(t, 6), Component::temporaries), 512);
  EXPECT_EQ(of(moment_at(t, 6), Component::activations), 512);
  EXPECT_EQ(of(moment_at(t, 6), Component::parameters), 2048);
  EXPECT_EQ(of(moment_at(t, 9), Component::activations), 0);
}

TEST(Peak, IsTheFirstOfTheHighest) {
  const Timeline t = by_hand();
  const Moment peak = peak_between(t, 0, 9);
  EXPECT_EQ(peak.bytes, 3072);
  EXPECT_EQ(peak.event, 5U);
  EXPECT_EQ(peak_between(t, 7, 9).bytes, 2560) << "what was alive at the beginning counts";
  EXPECT_EQ(peak_between(t, 7, 9).event, 7U);
  EXPECT_EQ(peak_between(t, 3, 3).bytes, 2560);
}

TEST(Sweep, EqualsTheSingleQuestions) {
  const Timeline t = by_hand();
  const std::vector<std::uint32_t> asked{2, 5, 5, 7, 9};
  const Sweep swept = sweep(t, asked);
  ASSERT_EQ(swept.at.size(), asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(swept.at[i].bytes, moment_at(t, asked[i]).bytes);
    EXPECT_EQ(swept.at[i].by_component, moment_at(t, asked[i]).by_component);
    EXPECT_EQ(swept.highest[i].bytes, peak_between(t, asked[0], asked[i]).bytes);
  }
  EXPECT_TRUE(sweep(t, {}).at.empty());
}

TEST(Parts, AreGroupedAndAddUp) {
  const Timeline t = by_hand();
  const std::vector<Part> parts = parts_at(t, 6);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].component, Component::parameters);
  EXPECT_EQ(t.names[parts[0].name], "weight");
  EXPECT_EQ(parts[0].layer, 0);
  EXPECT_EQ(parts[1].layer, 1);
  for (std::size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(t.names[parts[i].name], "mm");
    EXPECT_EQ(t.names[parts[i].module], "q_proj");
    EXPECT_EQ(parts[i].bytes, 512);
  }
  EXPECT_EQ(bytes_by_layer(parts), (std::vector<std::int64_t>{0, 1024, 2048}));
}

Footprint footprint() {
  Footprint f;
  f.lines = {{Component::parameters, 10, Level::allocated, {}},
             {Component::cached, 5, Level::reserved, {}},
             {Component::context, 3, Level::process, {}}};
  f.allocated_bytes = 10;
  f.reserved_bytes = 15;
  f.process_bytes = 18;
  return f;
}

TEST(AddsUp, EachLevelThatIsKnownContainsTheOneBefore) {
  EXPECT_TRUE(adds_up(footprint()));
  for (const auto change :
       {+[](Footprint& f) { f.allocated_bytes += 1; }, +[](Footprint& f) { *f.reserved_bytes += 1; },
        +[](Footprint& f) { *f.process_bytes -= 1; }, +[](Footprint& f) { f.lines.pop_back(); }}) {
    Footprint wrong = footprint();
    change(wrong);
    EXPECT_FALSE(adds_up(wrong));
  }
  Footprint unknown = footprint();
  unknown.reserved_bytes.reset();
  unknown.process_bytes.reset();
  EXPECT_TRUE(adds_up(unknown));
  EXPECT_TRUE(adds_up(Footprint{}));
}

TEST(Identical, SeesEveryTableAndTheTexts) {
  const Timeline t = by_hand();
  EXPECT_TRUE(identical(t, by_hand()));
  for (const auto change :
       {+[](Timeline& x) { x.blocks[2].requested_bytes += 1; }, +[](Timeline& x) { x.blocks[2].layer = 0; },
        +[](Timeline& x) { x.blocks[2].op = kNone; }, +[](Timeline& x) { x.blocks[0].label = 0; },
        +[](Timeline& x) { std::swap(x.events[6], x.events[7]); },
        +[](Timeline& x) { x.events[5].component = Component::gradients; },
        +[](Timeline& x) { x.events[0].stream = 1; }, +[](Timeline& x) { x.events[3].space = Space::device; },
        +[](Timeline& x) { x.ops[0].flops += 1; }, +[](Timeline& x) { x.ops[0].bytes_moved += 1; },
        +[](Timeline& x) { x.ops[0].phase = Phase::backward; }, +[](Timeline& x) { x.ops[0].module = 0; },
        +[](Timeline& x) { x.ops[0].first_event += 1; }, +[](Timeline& x) { x.marks[0].event += 1; },
        +[](Timeline& x) { x.marks.clear(); }, +[](Timeline& x) { x.granularity_bytes = 1; }}) {
    Timeline other = by_hand();
    change(other);
    EXPECT_FALSE(identical(t, other));
  }
  Timeline renamed = by_hand();
  renamed.names = NameTable();
  for (const char* name : {"weight", "mm", "k_proj", "after_forward"}) renamed.names.intern(name);
  EXPECT_FALSE(identical(t, renamed));
}

TEST(Serialise, DoesNotDependOnTheNumbersOfNames) {
  const auto named = [](std::vector<const char*> order) {
    Timeline t;
    for (const char* name : order) t.names.intern(name);
    t.blocks = {{1, kNone, t.names.intern("weight"), 0}};
    return t;
  };
  EXPECT_EQ(serialise(named({"weight", "mm"})), serialise(named({"mm", "weight"})));
}

TEST(Serialise, HasAFixedLayout) {
  Timeline t;
  t.granularity_bytes = 512;
  t.blocks = {{0x0102, kNone, 0, kNoLayer}};
  const std::vector<std::uint8_t> bytes = serialise(t);
  // granularity, number of blocks, one block (8 + 4 + 2 + length of an empty text), three empty tables
  ASSERT_EQ(bytes.size(), 8U + 8 + (8 + 4 + 2 + 4) + 3 * 8);
  EXPECT_EQ(bytes[0], 0x00);
  EXPECT_EQ(bytes[1], 0x02);
  EXPECT_EQ(bytes[16], 0x02);
  EXPECT_EQ(bytes[17], 0x01);
  EXPECT_EQ(std::count(bytes.begin() + 24, bytes.begin() + 30, 0xFF), 6);
}

TEST(FindPeak, IsThePeakOfTheSweepWhereverOneLooks) {
  const Timeline t = by_hand();
  for (std::uint32_t from = 0; from <= 9; ++from) {
    for (std::uint32_t to = from; to <= 9; ++to) {
      const Peak peak = find_peak(t, from, to);
      const Moment swept = peak_between(t, from, to);
      EXPECT_EQ(peak.bytes, swept.bytes) << from << " to " << to;
      EXPECT_EQ(peak.event, swept.event) << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace ullage::memory
