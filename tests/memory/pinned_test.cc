// Pinned memory as ATen/core/CachingHostAllocator.h takes it: powers of two, never given back.
#include "memory/pinned.h"

#include <gtest/gtest.h>

namespace ullage::memory {
namespace {

class Pinned : public ::testing::Test {
 protected:
  BlockId allocate(std::int64_t bytes, Space space = Space::host_pinned) {
    const auto id = static_cast<BlockId>(timeline.blocks.size());
    timeline.blocks.push_back({bytes, kNone, 0, kNoLayer});
    timeline.events.push_back({id, EventKind::alloc, Component::activations, space, 0});
    return id;
  }
  void free(BlockId id) {
    timeline.events.push_back({id, EventKind::free, Component::activations, Space::host_pinned, 0});
  }

  Timeline timeline;
};

TEST_F(Pinned, TakesPowersOfTwo) {
  allocate(1);
  allocate(1000);
  allocate(1024);
  allocate(1025);
  EXPECT_EQ(pinned_bytes(timeline), 1 + 1024 + 1024 + 2048);
}

TEST_F(Pinned, GivesOutAgainWhatWasFreedOfTheSamePower) {
  free(allocate(1000));
  allocate(600);
  EXPECT_EQ(pinned_bytes(timeline), 1024);
  allocate(500);
  EXPECT_EQ(pinned_bytes(timeline), 1024 + 512);
  allocate(1024);
  EXPECT_EQ(pinned_bytes(timeline), 1024 + 512 + 1024);
}

TEST_F(Pinned, CountsNoOtherMemory) {
  allocate(1 << 20, Space::device);
  allocate(1 << 20, Space::host);
  EXPECT_EQ(pinned_bytes(timeline), 0);
}

}  // namespace
}  // namespace ullage::memory
