#include "plan/largest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace ullage::plan {
namespace {

Headroom line(std::int64_t room, std::int64_t each) {
  return [=](std::int64_t size) -> Expected<std::int64_t> { return room - each * size; };
}

TEST(Largest, OfAStraightLineIsFoundInAHandfulOfTries) {
  const auto found = find_largest(1, 1'000'000, line(80'000, 37));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 2162);
  EXPECT_FALSE(found->at_the_limit);
  EXPECT_LE(found->tried, 18);
}

TEST(Largest, StopsAtTheLimit) {
  const auto found = find_largest(1, 100, line(1'000'000, 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 100);
  EXPECT_TRUE(found->at_the_limit);
}

TEST(Largest, IsNothingWhereTheFirstDoesNotFit) {
  const auto found = find_largest(1, 100, line(0, 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 0);
  EXPECT_EQ(found->tried, 1);
}

TEST(Largest, AFirstSizeThatCannotBeRunIsAnError) {
  const auto found = find_largest(1, 100, [](std::int64_t) -> Expected<std::int64_t> {
    return fail(ErrorCode::invalid_argument, "--micro-batch", "no");
  });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "--micro-batch");
}

TEST(Largest, SizesBelowTheLeastThatRunsArePassedOver) {
  const auto found = find_largest(1, 10'000, [](std::int64_t size) -> Expected<std::int64_t> {
    if (size < 200) return fail(ErrorCode::invalid_argument, "--seq-len", "holds no image");
    return 1'000 - size;
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 1'000);
}

TEST(Largest, OneBeyondThatCannotBeRunDoesNotFit) {
  const auto found = find_largest(1, 1'000, [](std::int64_t size) -> Expected<std::int64_t> {
    if (size > 70) return fail(ErrorCode::invalid_argument, "--seq-len", "too many positions");
    return 1'000'000 - size;
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 70);
}

TEST(Largest, TheWholeRangeOfNumbersIsNoTrap) {
  const auto found = find_largest(1, std::numeric_limits<std::int64_t>::max() - 1,
                                  [](std::int64_t size) -> Expected<std::int64_t> { return (1LL << 40) - size; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size, 1LL << 40);
}

// An allocator rounds: memory rises in steps, and now and then it falls.
RC_GTEST_PROP(Largest, FitsAndTheNextDoesNot, ()) {
  const auto room = *rc::gen::inRange<std::int64_t>(0, 1 << 24);
  const auto step = *rc::gen::inRange<std::int64_t>(1, 4096);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
  const Headroom headroom = [=](std::int64_t size) -> Expected<std::int64_t> {
    const auto noise = static_cast<std::int64_t>((static_cast<std::uint64_t>(size) * 2654435761U + seed) % 1024);
    return room - (size * 37 + noise) / step * step;
  };
  const auto found = find_largest(1, limit, headroom);
  RC_ASSERT(found.has_value());
  if (found->size == 0) {
    RC_ASSERT(*headroom(1) < 0);
    return;
  }
  RC_ASSERT(*headroom(found->size) >= 0);
  RC_ASSERT(found->at_the_limit == (found->size == limit));
  RC_ASSERT(found->at_the_limit || *headroom(found->size + 1) < 0);
  RC_ASSERT(found->tried <= 64);
}

// A straight line through zero at `last`, asked from good and from bad guesses.
TEST(LargestNear, FindsTheSameFromAnyGuess) {
  for (const std::int64_t last : {1, 7, 500, 999}) {
    for (const std::int64_t guess : {1, 480, 500, 520, 5000}) {
      const auto found =
          find_largest_near(guess, 1, 1000, [&](std::int64_t size) -> Expected<std::int64_t> { return last - size; });
      EXPECT_EQ(found.size, last) << guess;
      EXPECT_FALSE(found.at_the_limit);
    }
  }
}

TEST(LargestNear, EndsAtTheLimitAndAtNothing) {
  const auto all = find_largest_near(10, 2, 20, [](std::int64_t) -> Expected<std::int64_t> { return 1; });
  EXPECT_EQ(all.size, 20);
  EXPECT_TRUE(all.at_the_limit);
  const auto none = find_largest_near(10, 2, 20, [](std::int64_t) -> Expected<std::int64_t> { return -1; });
  EXPECT_EQ(none.size, 0);
  EXPECT_FALSE(none.at_the_limit);
}

}  // namespace
}  // namespace ullage::plan
