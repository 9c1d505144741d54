#include "memory/timeline_replay.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace ullage::memory {
namespace {

Event event(BlockId block, EventKind kind, Space space = Space::device) {
  return {block, kind, Component::temporaries, space, 0};
}

// Two blocks that stay, then a step that needs one more for a while.
Timeline two_and_a_step() {
  Timeline out;
  out.blocks = {{30 * kMiB, kNone, 0, kNoLayer}, {100, kNone, 0, kNoLayer}, {50 * kMiB, kNone, 0, kNoLayer}};
  out.events = {event(0, EventKind::alloc), event(1, EventKind::alloc), event(2, EventKind::alloc),
                event(2, EventKind::free)};
  return out;
}

TEST(TimelineReplay, ReservesWhatAStepNeeds) {
  const Timeline timeline = two_and_a_step();
  CachingAllocator allocator;
  TimelineReplay replay(allocator);
  EXPECT_EQ(replay.run(timeline, 0, 4), 4u);
  EXPECT_EQ(allocator.allocated_bytes(), 30 * kMiB + 512);
  EXPECT_EQ(allocator.reserved_bytes(), 82 * kMiB);
}

TEST(TimelineReplay, AStepCanBePlayedAgain) {
  const Timeline timeline = two_and_a_step();
  CachingAllocator allocator;
  TimelineReplay replay(allocator);
  replay.run(timeline, 0, 4);
  EXPECT_TRUE(replay.carry_over(timeline, 2));
  EXPECT_EQ(replay.run(timeline, 2, 4), 4u);
  EXPECT_EQ(allocator.reserved_bytes(), 82 * kMiB);
}

TEST(TimelineReplay, SaysWhichRequestFailed) {
  const Timeline timeline = two_and_a_step();
  CachingAllocator allocator({}, {64 * kMiB, 0, 512});
  TimelineReplay replay(allocator);
  EXPECT_EQ(replay.run(timeline, 0, 4), 2u);
  EXPECT_EQ(allocator.last_failure().segment_bytes, 50 * kMiB);
}

TEST(TimelineReplay, MemoryOfTheHostIsNotTheCards) {
  Timeline timeline = two_and_a_step();
  timeline.events[2].space = timeline.events[3].space = Space::host;
  CachingAllocator allocator;
  TimelineReplay(allocator).run(timeline, 0, 4);
  EXPECT_EQ(allocator.reserved_bytes(), 32 * kMiB);
}

TEST(TimelineReplay, WhatTheNextTimelineLacksIsRequestedAndTheRestFreed) {
  const Timeline before = two_and_a_step();
  Timeline after = two_and_a_step();
  after.blocks[1].requested_bytes = 2000;
  CachingAllocator allocator;
  TimelineReplay replay(allocator);
  replay.run(before, 0, 4);
  EXPECT_FALSE(replay.carry_over(after, 2));
  EXPECT_EQ(allocator.allocated_bytes(), 30 * kMiB + 2048);
}

}  // namespace
}  // namespace ullage::memory
