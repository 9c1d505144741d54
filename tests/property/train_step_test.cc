// What holds for every training step, over random models and options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "random_step.h"

namespace ullage::testing {
namespace {

using namespace engines::pytorch;
using memory::Component;
using memory::Moment;

constexpr std::uint64_t kSteps = 300;
constexpr std::int64_t kMostLayers = 4;

template <class Check>
void for_random_steps(Check check) {
  for (std::uint64_t seed = 1; seed <= kSteps; ++seed) {
    const RandomStep setup = random_step(seed, kMostLayers);
    SCOPED_TRACE(setup.text());
    check(setup);
    if (::testing::Test::HasFailure()) return;  // the first tells enough
  }
}

std::int64_t sum(const memory::ByComponent& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

std::int64_t of(const Moment& moment, Component component) {
  return moment.by_component[static_cast<std::size_t>(component)];
}

std::vector<std::uint32_t> moments_of(const TrainRun& run) {
  return {run.before_step,
          run.after_forward,
          run.after_backward,
          run.after_step,
          static_cast<std::uint32_t>(run.timeline.events.size()),
          peak_of(run).event};
}

TEST(TrainStepProperty, ComponentsPartsAndLayersAddUpAtEveryPhase) {
  for_random_steps([](const RandomStep& setup) {
    const TrainRun done = run(setup);
    for (const std::uint32_t event : moments_of(done)) {
      const Moment moment = memory::moment_at(done.timeline, event);
      EXPECT_EQ(sum(moment.by_component), moment.bytes);
      const std::vector<memory::Part> parts = memory::parts_at(done.timeline, event);
      std::int64_t in_parts = 0;
      for (const memory::Part& part : parts) in_parts += part.bytes;
      EXPECT_EQ(in_parts, moment.bytes);
      const std::vector<std::int64_t> layers = memory::bytes_by_layer(parts);
      EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}), moment.bytes);
    }
  });
}

TEST(TrainStepProperty, ThePeakIsTheHighestOfAllMoments) {
  for_random_steps([](const RandomStep& setup) {
    const TrainRun done = run(setup);
    const memory::Timeline& timeline = done.timeline;
    std::int64_t live = 0;
    std::int64_t highest = 0;
    for (std::size_t i = 0; i <= timeline.events.size(); ++i) {
      if (i >= done.before_step) highest = std::max(highest, live);
      if (i == timeline.events.size()) break;
      const memory::Event& event = timeline.events[i];
      if (event.kind == memory::EventKind::alloc) live += timeline.block_bytes(event.block);
      if (event.kind == memory::EventKind::free) live -= timeline.block_bytes(event.block);
    }
    EXPECT_EQ(peak_of(done).bytes, highest);
  });
}

// Whether `tokens` are the first that a window of some layer does not hold: from there on attention has a mask, and so
// another kernel with a workspace of its own.
bool reaches_window(const model::Architecture& architecture, std::int64_t tokens) {
  return std::any_of(architecture.kinds.begin(), architecture.kinds.end(), [&](const model::LayerKind& kind) {
    return kind.attention.window.has_value() && *kind.attention.window == tokens;
  });
}

TEST(TrainStepProperty, MoreBatchOrSequenceNeverNeedsLess) {
  for_random_steps([](const RandomStep& setup) {
    // The fused loss cuts the rows into a number of chunks that grows in steps: one row more can make them smaller.
    if (setup.options.loss == Loss::fused) return;
    const std::int64_t peak = peak_of(run(setup)).bytes;
    TrainOptions more_batch = setup.options;
    ++more_batch.micro_batch;
    EXPECT_GE(peak_of(run(setup.architecture, more_batch)).bytes, peak) << "one sequence more";
    TrainOptions more_tokens = setup.options;
    ++more_tokens.seq_len;
    if (reaches_window(setup.architecture, more_tokens.seq_len)) return;
    EXPECT_GE(peak_of(run(setup.architecture, more_tokens)).bytes, peak) << "one token more";
  });
}

TEST(TrainStepProperty, RecomputeNeverRaisesWhatIsKeptForBackward) {
  for_random_steps([](const RandomStep& setup) {
    // Below the first thing that trains a plain step keeps nothing, while a checkpoint keeps its input all the same.
    if (setup.options.tuning.tuner != model::Tuner::none || !setup.options.tuning.frozen.empty()) return;
    TrainOptions options = setup.options;
    const auto kept = [&](Recompute recompute) {
      options.recompute = recompute;
      const TrainRun done = run(setup.architecture, options);
      return of(memory::moment_at(done.timeline, done.after_forward), Component::activations);
    };
    EXPECT_LE(kept(Recompute::full), kept(Recompute::none));
  });
}

TEST(TrainStepProperty, TheSameInputGivesTheSameTimeline) {
  for_random_steps(
      [](const RandomStep& setup) { EXPECT_TRUE(memory::identical(run(setup).timeline, run(setup).timeline)); });
}

TEST(TrainStepProperty, ASteadyStepLeavesNothingBehind) {
  for_random_steps([](const RandomStep& setup) {
    TrainOptions options = setup.options;
    options.step = Step::steady;
    const TrainRun done = run(setup.architecture, options);
    const Moment before = memory::moment_at(done.timeline, done.before_step);
    // The caller's batch goes with the micro-batch, gradients with zero_grad (or stay, where there is no optimizer).
    EXPECT_EQ(memory::moment_at(done.timeline, done.after_step).bytes, before.bytes);
    EXPECT_EQ(memory::moment_at(done.timeline, done.after_step).by_component, before.by_component);
  });
}

TEST(TrainStepProperty, EveryBlockIsBornOnceAndDiesAtMostOnce) {
  for_random_steps([](const RandomStep& setup) {
    const TrainRun done = run(setup);
    std::vector<int> state(done.timeline.blocks.size(), 0);  // 0 not yet, 1 alive, 2 dead
    for (const memory::Event& event : done.timeline.events) {
      ASSERT_LT(event.block, state.size());
      int& now = state[event.block];
      EXPECT_EQ(now, event.kind == memory::EventKind::alloc ? 0 : 1);
      if (event.kind == memory::EventKind::alloc) now = 1;
      if (event.kind == memory::EventKind::free) now = 2;
    }
    EXPECT_EQ(std::count(state.begin(), state.end(), 0), 0) << "a block without a birth";
  });
}

TEST(TrainStepProperty, ParameterBlocksHoldTheParametersCounted) {
  for_random_steps([](const RandomStep& setup) {
    const TrainRun done = run(setup);
    std::int64_t bytes = 0;
    for (const memory::Event& event : done.timeline.events) {
      if (event.kind == memory::EventKind::alloc && event.component == Component::parameters) {
        bytes += done.timeline.blocks[event.block].requested_bytes;
      }
    }
    const auto plan = model::plan_tuning(setup.architecture, setup.options.tuning);
    ASSERT_TRUE(plan);
    const model::ParameterTotals totals = model::parameter_totals(setup.architecture, *plan);
    EXPECT_EQ(bytes, parameter_bytes(totals, setup.options));
  });
}

}  // namespace
}  // namespace ullage::testing
