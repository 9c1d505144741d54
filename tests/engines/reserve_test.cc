// What lies around a step on a card: workspaces of cuBLAS, the allocator's reserve, the end of the card's memory.
#include "engines/pytorch/reserve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "engines/pytorch/reserve_nearby.h"
#include "engines/pytorch/workspaces.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::engines::pytorch {
namespace {

constexpr std::int64_t kWorkspace = 8519680;

model::Architecture small_model() {
  Json config = model::find_model("openai-community/gpt2")->config;
  config["n_layer"] = 2;
  return model::build_architecture(config, "config").value();
}

TrainRun run(Step step, bool workspaces) {
  static const model::Architecture architecture = small_model();
  TrainOptions options;
  options.micro_batch = 2;
  options.seq_len = 256;
  options.step = step;
  TrainRun out = run_train_step(architecture, options).value();
  if (workspaces) add_workspaces(out, step, kWorkspace);
  return out;
}

std::uint32_t end_of(const TrainRun& run) { return static_cast<std::uint32_t>(run.timeline.events.size()); }

memory::Moment peak_of(const TrainRun& run) { return memory::peak_between(run.timeline, run.before_step, end_of(run)); }

std::int64_t workspace_at(const TrainRun& run, std::uint32_t event) {
  const memory::Moment moment = memory::moment_at(run.timeline, event);
  return moment.by_component[static_cast<std::size_t>(memory::Component::workspace)];
}

TEST(Workspaces, ALaterStepHasThemFromTheBeginning) {
  const TrainRun without = run(Step::steady, false);
  const TrainRun with = run(Step::steady, true);
  EXPECT_EQ(workspace_at(with, with.before_step), 2 * kWorkspace);
  EXPECT_EQ(peak_of(with).bytes, peak_of(without).bytes + 2 * kWorkspace);
  EXPECT_EQ(with.before_step, without.before_step + 2);
  EXPECT_EQ(with.after_step, without.after_step + 2);
}

TEST(Workspaces, TheFirstStepMakesOneForwardAndOneBackward) {
  const TrainRun with = run(Step::first, true);
  EXPECT_EQ(workspace_at(with, with.before_step), 0);
  EXPECT_EQ(workspace_at(with, with.after_forward), kWorkspace);
  EXPECT_EQ(workspace_at(with, with.after_backward), 2 * kWorkspace);
  const TrainRun forward = run(Step::forward, true);
  EXPECT_EQ(workspace_at(forward, end_of(forward)), kWorkspace);
}

// Operators keep the events that are theirs; a workspace is the product's that needs it.
TEST(Workspaces, OperatorsMoveOnWithTheirEvents) {
  const TrainRun without = run(Step::first, false);
  const TrainRun with = run(Step::first, true);
  ASSERT_EQ(with.timeline.ops.size(), without.timeline.ops.size());
  std::size_t moved = 0;
  for (std::size_t i = 0; i < with.timeline.ops.size(); ++i) {
    const std::uint32_t here = with.timeline.ops[i].first_event;
    const std::uint32_t there = without.timeline.ops[i].first_event;
    const bool makes_one =
        here < end_of(with) && with.timeline.blocks[with.timeline.events[here].block].requested_bytes == kWorkspace;
    if (!makes_one && there < end_of(without)) {
      EXPECT_EQ(with.timeline.events[here], without.timeline.events[there]);
    }
    moved += makes_one ? 1 : 0;
  }
  EXPECT_EQ(moved, 2u);
}

TEST(Reserve, IsAtLeastWhatIsAllocatedAndWholeSegments) {
  const TrainRun first = run(Step::first, true);
  const TrainRun step = run(Step::steady, true);
  const memory::Moment peak = peak_of(step);
  const Reserved reserved = reserve({step, &first, peak.event, {}, {}});
  EXPECT_FALSE(reserved.full);
  EXPECT_FALSE(reserved.gave_back);
  EXPECT_GE(reserved.block_bytes, peak.bytes);
  EXPECT_GE(reserved.bytes, reserved.block_bytes + reserved.idle_bytes);
  EXPECT_EQ(reserved.bytes % (2 * kMiB), 0);
}

TEST(Reserve, ExpandableSegmentsReserveWholePages) {
  const TrainRun first = run(Step::first, true);
  const TrainRun step = run(Step::steady, true);
  memory::AllocatorSettings expandable;
  expandable.expandable_segments = true;
  const Reserved reserved = reserve({step, &first, peak_of(step).event, expandable, {}});
  // Nothing is left unsplit but for less than 512 bytes.
  EXPECT_EQ(reserved.block_bytes, peak_of(step).bytes);
  EXPECT_GE(reserved.bytes, reserved.block_bytes);
  EXPECT_EQ(reserved.bytes % (2 * kMiB), 0);
}

// From a card that is far too small to one that holds all: it fails at ever later requests, then gives cached memory
// back, then just runs.
TEST(Reserve, ALargerCardFailsLater) {
  const TrainRun first = run(Step::first, true);
  const TrainRun step = run(Step::steady, true);
  const std::uint32_t peak = peak_of(step).event;
  const std::int64_t needed = reserve({step, &first, peak, {}, {}}).bytes;
  std::int64_t before = -1;
  for (std::int64_t card = 64 * kMiB; card < needed; card += 64 * kMiB) {
    const Reserved reserved = reserve({step, &first, peak, {}, {card, 0, 512}});
    if (!reserved.full) {
      EXPECT_TRUE(reserved.gave_back);
      before = INT64_MAX;
      continue;
    }
    EXPECT_LT(before, INT64_MAX) << "a smaller card was enough";
    const std::int64_t at = (reserved.full->in_first_step ? 0 : end_of(first)) + std::int64_t{reserved.full->event};
    EXPECT_GE(at, before);
    EXPECT_LE(reserved.full->why.reserved_bytes, card);
    EXPECT_GT(reserved.full->why.segment_bytes, reserved.full->why.free_bytes);
    before = at;
  }
  EXPECT_FALSE(reserve({step, &first, peak, {}, {needed, 0, 512}}).full);
}

TEST(ReserveNearby, IsWhatATokenLessReserves) {
  const model::Architecture architecture = small_model();
  TrainOptions options;
  options.micro_batch = 2;
  options.seq_len = 256;
  TrainOptions changed = options;
  changed.seq_len = 255;
  TrainRun steady = run_train_step(architecture, changed).value();
  add_workspaces(steady, Step::steady, kWorkspace);
  changed.step = Step::first;
  TrainRun first = run_train_step(architecture, changed).value();
  add_workspaces(first, Step::first, kWorkspace);
  const std::int64_t bytes = reserve({steady, &first, steady.before_step, {}, {}}).bytes;
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(reserved_nearby({architecture, options, kWorkspace, {}, nullptr}), bytes);
}

TEST(ReserveNearby, ThereIsNoSequenceOfNoToken) {
  TrainOptions options;
  options.seq_len = 1;
  EXPECT_EQ(reserved_nearby({small_model(), options, 0, {}, nullptr}), 0);
}

}  // namespace
}  // namespace ullage::engines::pytorch
