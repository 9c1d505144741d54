#include "memory/caching_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "memory/naive_allocator.h"

namespace ullage::memory {
namespace {

// One step of a program: a request, or a free of one of the blocks alive.
struct Step {
  std::int64_t bytes = 0;  // 0: a free
  std::size_t which = 0;
  Stream stream = 0;
};

// Numbers over their whole range, whatever size rapidcheck is at.
rc::Gen<std::uint32_t> any_number() { return rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint32_t>()); }

std::int64_t size_of_number(std::uint32_t number) {
  const std::int64_t more = number / 16;
  switch (number % 8) {
    case 0:
    case 1: return 1 + more % 4096;
    case 2:
    case 3: return 1 + more % (2 * kMiB);
    case 4:
    case 5: return kMiB + more % (11 * kMiB);
    case 6: return 10 * kMiB + more % (80 * kMiB);
    default: return std::array{kMiB, kMiB + 1, 10 * kMiB, 4 * kMiB, 24 * kMiB}[static_cast<std::size_t>(more % 5)];
  }
}

std::vector<Step> any_program() {
  const auto numbers = *rc::gen::scale(8.0, rc::gen::container<std::vector<std::uint32_t>>(any_number()));
  std::vector<Step> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool frees = numbers[i] / 4096 % 5 < (i / 64 % 2 == 0 ? 1 : 3);
    out.push_back({frees ? 0 : size_of_number(numbers[i]), numbers[i] / 7, static_cast<Stream>(numbers[i] / 64 % 2)});
  }
  return out;
}

AllocatorSettings any_settings() {
  static const char* const kSettings[] = {"",
                                          "expandable_segments:True",
                                          "max_split_size_mb:32",
                                          "roundup_power2_divisions:4",
                                          "roundup_power2_divisions:[2:8,16:2,>:1]",
                                          "garbage_collection_threshold:0.4,per_process_memory_fraction:0.9",
                                          "large_segment_size_mb:12"};
  return parse_allocator_settings(
             *rc::gen::elementOf(std::vector<const char*>(std::begin(kSettings), std::end(kSettings))), "test")
      .value();
}

// Calls `check` after each step with the handle of a request (kNone: failed) or nothing.
template <class Check>
void play(CachingAllocator& allocator, const std::vector<Step>& program, Check check) {
  std::vector<Handle> alive;
  for (const Step& step : program) {
    if (step.bytes > 0) {
      const Handle handle = allocator.allocate(step.bytes, step.stream);
      if (handle != kNone) alive.push_back(handle);
      check(step, handle);
    } else if (!alive.empty()) {
      const std::size_t at = step.which % alive.size();
      allocator.free(alive[at]);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
      check(step, kNone);
    }
  }
}

void expect_consistent(const CachingAllocator& allocator) {
  std::int64_t used = 0;
  std::int64_t mapped = 0;
  const std::vector<BlockView> blocks = allocator.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockView& block = blocks[i];
    RC_ASSERT(block.bytes > 0);
    if (block.in_use && !block.awaited) used += block.bytes;
    if (block.mapped) mapped += block.bytes;
    if (block.in_use) RC_ASSERT(block.requested_bytes <= block.bytes);
    if (i == 0 || blocks[i - 1].segment != block.segment) continue;
    // Neighbours tile their segment, and two free ones of a kind would have been joined.
    RC_ASSERT(blocks[i - 1].address + static_cast<std::uint64_t>(blocks[i - 1].bytes) == block.address);
    RC_ASSERT(block.in_use || blocks[i - 1].in_use || block.mapped != blocks[i - 1].mapped);
  }
  RC_ASSERT(used == allocator.allocated_bytes());
  RC_ASSERT(mapped == allocator.reserved_bytes());
  RC_ASSERT(allocator.reserved_bytes() >= allocator.allocated_bytes());
  RC_ASSERT(allocator.allocated_bytes() >= allocator.requested_bytes());
  RC_ASSERT(allocator.idle_bytes() <= allocator.reserved_bytes() - allocator.allocated_bytes());
  RC_ASSERT(allocator.reserved_bytes() <= allocator.card().total_bytes);
}

CardMemory card_of(std::int64_t bytes, std::uint64_t first_address = 1 << 20) { return {bytes, 0, first_address}; }

bool holds(const char* what, const std::function<void()>& property) { return rc::check(what, property); }

TEST(CachingAllocator, BlocksTileSegmentsAndAddUp) {
  EXPECT_TRUE(holds("blocks tile segments", [] {
    CachingAllocator allocator(any_settings(), card_of(*rc::gen::element(300 * kMiB, 80 * kGiB)));
    const std::vector<Step> program = any_program();
    std::size_t step_number = 0;
    play(allocator, program, [&](const Step&, Handle) {
      if (++step_number % 8 == 0) expect_consistent(allocator);
    });
    expect_consistent(allocator);
  }));
}

TEST(CachingAllocator, DoesWhatTheSlowOneDoes) {
  EXPECT_TRUE(holds("as the slow one", [] {
    const std::int64_t card = *rc::gen::element(250 * kMiB, 600 * kMiB, 80 * kGiB);
    CachingAllocator allocator({}, card_of(card));
    testing::NaiveAllocator slow(card, 1 << 20);
    std::vector<std::pair<Handle, std::uint64_t>> alive;
    for (const Step& step : any_program()) {
      if (step.bytes > 0) {
        const Handle handle = allocator.allocate(step.bytes, step.stream);
        const auto place = slow.allocate(step.bytes, step.stream);
        RC_ASSERT((handle != kNone) == place.has_value());
        if (!place) continue;
        RC_ASSERT(allocator.block_address(handle) == place->address);
        RC_ASSERT(allocator.block_bytes(handle) == place->bytes);
        alive.emplace_back(handle, place->address);
      } else if (!alive.empty()) {
        const std::size_t at = step.which % alive.size();
        allocator.free(alive[at].first);
        slow.free(alive[at].second);
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
      }
      RC_ASSERT(allocator.reserved_bytes() == slow.reserved());
      RC_ASSERT(allocator.allocated_bytes() == slow.allocated());
    }
  }));
}

TEST(CachingAllocator, GivesTheSameBlockAgainAtOnce) {
  EXPECT_TRUE(holds("free, then the same request", [] {
    CachingAllocator allocator(any_settings(), card_of(80 * kGiB));
    play(allocator, any_program(), [](const Step&, Handle) {});
    const std::int64_t bytes = size_of_number(*any_number());
    const Handle first = allocator.allocate(bytes);
    const std::uint64_t address = allocator.block_address(first);
    const std::int64_t reserved = allocator.reserved_bytes();
    allocator.free(first);
    const Handle second = allocator.allocate(bytes);
    RC_ASSERT(allocator.block_address(second) <= address);
    RC_ASSERT(allocator.reserved_bytes() == reserved);
  }));
}

TEST(CachingAllocator, DoesNotDependOnWhereAddressesBegin) {
  EXPECT_TRUE(holds("any first address", [] {
    const AllocatorSettings settings = any_settings();
    const std::int64_t card = *rc::gen::element(300 * kMiB, 80 * kGiB);
    const std::uint64_t base = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 46) * 512;
    CachingAllocator here(settings, card_of(card, 512));
    CachingAllocator there(settings, card_of(card, base));
    const std::vector<Step> program = any_program();
    std::vector<std::uint64_t> places;
    play(here, program, [&](const Step&, Handle h) { places.push_back(h == kNone ? 0 : here.block_address(h) - 512); });
    std::size_t at = 0;
    play(there, program,
         [&](const Step&, Handle h) { RC_ASSERT(places[at++] == (h == kNone ? 0 : there.block_address(h) - base)); });
    RC_ASSERT(here.reserved_bytes() == there.reserved_bytes());
  }));
}

TEST(CachingAllocator, BlocksOfAnotherStreamAreNotTaken) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(5 * kMiB, 0));
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB);
  allocator.allocate(5 * kMiB, 1);
  EXPECT_EQ(allocator.reserved_bytes(), 40 * kMiB);
}

TEST(CachingAllocator, ABlockThatAStreamStillUsesIsNotGivenOut) {
  CachingAllocator allocator({}, card_of(30 * kMiB));
  const Handle first = allocator.allocate(20 * kMiB);
  allocator.free_requested(first);
  EXPECT_EQ(allocator.allocated_bytes(), 0);
  const Handle small = allocator.allocate(512);
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB);
  // The card is full, so the stream is waited for and the segment given back.
  ASSERT_NE(allocator.allocate(24 * kMiB), kNone);
  EXPECT_EQ(allocator.reserved_bytes(), 26 * kMiB);
  allocator.free_completed(first);  // as recorded later: nothing is left to do
  allocator.free(small);
  EXPECT_EQ(allocator.reserved_bytes(), 26 * kMiB);
}

TEST(CachingAllocator, SaysWhyARequestFailed) {
  CachingAllocator allocator({}, {100 * kMiB, 10 * kMiB, 512});
  allocator.allocate(30 * kMiB);
  allocator.allocate(100);
  ASSERT_EQ(allocator.allocate(59 * kMiB), kNone);
  const OutOfMemory& failure = allocator.last_failure();
  EXPECT_EQ(failure.segment_bytes, 60 * kMiB);
  EXPECT_EQ(failure.free_bytes, 58 * kMiB);
  EXPECT_EQ(failure.allocated_bytes, 30 * kMiB + 512);
  EXPECT_EQ(failure.reserved_bytes, 32 * kMiB);
}

TEST(CachingAllocator, TakesThePlaceItIsGiven) {
  CachingAllocator allocator;
  allocator.place_next_segment(4096);
  EXPECT_EQ(allocator.block_address(allocator.allocate(512)), 4096u);
  EXPECT_EQ(allocator.block_address(allocator.allocate(512)), 4608u);
}

}  // namespace
}  // namespace ullage::memory
