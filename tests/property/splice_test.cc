// Repeating equal layers gives what simulating each of them gives: timeline, peak, phases and attribution.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "random_step.h"

namespace ullage::testing {
namespace {

using namespace engines::pytorch;

constexpr std::uint64_t kSteps = 1000;
constexpr std::int64_t kMostLayers = 40;

// Where two timelines part, for people.
std::string first_difference(const memory::Timeline& a, const memory::Timeline& b) {
  const auto in = [](const char* what, const auto& x, const auto& y) {
    std::size_t i = 0;
    while (i < x.size() && i < y.size() && x[i] == y[i]) ++i;
    return i == x.size() && i == y.size() ? std::string()
                                          : std::string(what) + " " + std::to_string(i) + " of " +
                                                std::to_string(x.size()) + "/" + std::to_string(y.size());
  };
  for (const std::string& place : {in("block", a.blocks, b.blocks), in("event", a.events, b.events),
                                   in("operator", a.ops, b.ops), in("mark", a.marks, b.marks)}) {
    if (!place.empty()) return place;
  }
  return "names";
}

void expect_equal(const TrainRun& spliced, const TrainRun& full) {
  EXPECT_TRUE(memory::identical(spliced.timeline, full.timeline)) << first_difference(spliced.timeline, full.timeline);
  EXPECT_EQ(spliced.before_step, full.before_step);
  EXPECT_EQ(spliced.after_forward, full.after_forward);
  EXPECT_EQ(spliced.after_backward, full.after_backward);
  EXPECT_EQ(spliced.after_step, full.after_step);
  const memory::Moment peak = peak_of(full);
  EXPECT_EQ(peak_of(spliced).event, peak.event);
  EXPECT_EQ(peak_of(spliced).by_component, peak.by_component);
  for (const std::uint32_t event : {peak.event, full.after_forward, full.after_backward}) {
    EXPECT_EQ(memory::parts_at(spliced.timeline, event), memory::parts_at(full.timeline, event));
  }
}

TEST(Splice, EqualsTheFullRun) {
  std::uint64_t spliced = 0;
  for (std::uint64_t seed = 1; seed <= kSteps; ++seed) {
    const RandomStep setup = random_step(seed + 1'000'000, kMostLayers);
    SCOPED_TRACE(setup.text());
    const TrainRun fast = run(setup, true);
    const TrainRun full = run(setup, false);
    EXPECT_FALSE(full.spliced);
    spliced += fast.spliced ? 1 : 0;
    expect_equal(fast, full);
    if (HasFailure()) return;
  }
  EXPECT_GE(spliced, kSteps / 2) << "a splice that never happens proves nothing";
  std::cout << spliced << " of " << kSteps << " runs were spliced\n";
}

}  // namespace
}  // namespace ullage::testing
