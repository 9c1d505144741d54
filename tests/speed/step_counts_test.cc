// How many instructions a prediction takes. Counts repeat on a busy machine, times do not.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "speed/count.h"

namespace ullage {
namespace {

// Of one predicted step. The bounds leave a tenth to compilers and to the standard library.
constexpr std::int64_t kMostSpliced = 3'000'000;
constexpr std::int64_t kMostFull = 16'600'000;
constexpr std::int64_t kMostReplayed = 11'200'000;  // 12.5 million took 1.8 ms; it may take 3
constexpr std::int64_t kMostAsked = 30'500'000;
constexpr std::int64_t kMostRanged = 63'000'000;
constexpr std::int64_t kMostSearched = 136'000'000;  // 4 million take a millisecond at 2 GHz, and it may take 50
constexpr std::int64_t kMostFits = 1'390'000'000;    // 200 ms at that pace

constexpr std::int64_t kMostLaunch = 2'000'000;
constexpr std::int64_t kMostServing = 13'900'000;  // 2 ms at that pace

std::int64_t per_call(const std::string& what, const std::string& how = {}) {
  const std::int64_t one = speed::instructions(what + " 1 " + how);
  const std::int64_t three = speed::instructions(what + " 3 " + how);
  return (three - one) / 2;
}

std::int64_t per_step(const std::string& how) { return per_call("--steps", how); }

class StepCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!speed::is_real_build()) GTEST_SKIP() << "only an optimised build without sanitizers tells anything";
    if (!speed::can_count()) GTEST_SKIP() << "valgrind is not installed";
  }
};

TEST_F(StepCounts, WithEqualLayersSpliced) {
  const std::int64_t count = per_step("--spliced");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostSpliced);
}

TEST_F(StepCounts, InFull) {
  const std::int64_t count = per_step("--full");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostFull);
}

TEST_F(StepCounts, SplicedAndThroughTheAllocator) {
  const std::int64_t count = per_step("--replayed");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostReplayed);
}

TEST_F(StepCounts, OfAWholeQuestion) {
  const std::int64_t count = per_step("--asked");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostAsked);
}

TEST_F(StepCounts, OfReadingALaunchCommand) {
  const std::int64_t count = per_call("--launches");
  std::cout << count << " instructions a command\n";
  EXPECT_LE(count, kMostLaunch);
}

// vLLM's start, its command read and the model built from its configuration.
TEST_F(StepCounts, OfAnsweringALaunchCommand) {
  const std::int64_t count = per_call("--checks");
  std::cout << count << " instructions an answer\n";
  EXPECT_LE(count, kMostServing);
}

TEST_F(StepCounts, OfAWholeQuestionWithItsRange) {
  const std::int64_t count = per_call("--steps", "--ranged");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostRanged);
}

TEST_F(StepCounts, OfASearchForTheLargestMicroBatch) {
  const std::int64_t one = speed::instructions("--search 1");
  const std::int64_t two = speed::instructions("--search 2");
  std::cout << two - one << " instructions a search\n";
  EXPECT_LE(two - one, kMostSearched);
}

// Of all models and all cards.
TEST_F(StepCounts, OfFittingAllModelsToAllCards) {
  const std::int64_t count = speed::instructions("--fits 1");
  std::cout << count << " instructions for the whole catalogue\n";
  EXPECT_LE(count, kMostFits);
}

}  // namespace
}  // namespace ullage
