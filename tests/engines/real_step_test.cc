// `--kernels cuda` against steps that really ran (tests/data/lab/real-events): autograd sums gradients in place where
// it owns them, and transformers searches for packed sequences. What is under 64 bytes is in neither log.
#include <gtest/gtest.h>

#include "engines/pytorch/train.h"
#include "event_log.h"
#include "model/family.h"

namespace ullage {
namespace {

using testing::Allocation;

constexpr std::int64_t kSmallest = 64;

std::vector<Allocation> large_allocations(const engines::pytorch::TrainRun& run) {
  std::vector<Allocation> out;
  std::int64_t live = 0;
  for (std::uint32_t i = 0; i < run.timeline.events.size(); ++i) {
    const memory::Event& event = run.timeline.events[i];
    const memory::Block& block = run.timeline.blocks[event.block];
    if (block.requested_bytes < kSmallest) continue;
    if (event.kind == memory::EventKind::free) live -= block.requested_bytes;
    if (event.kind != memory::EventKind::alloc) continue;
    live += block.requested_bytes;
    const std::string name =
        block.op == memory::kNone ? "" : std::string(run.timeline.names[run.timeline.ops[block.op].name]);
    if (i >= run.before_step) out.push_back({block.requested_bytes, live, name, i});
  }
  return out;
}

class RealStepTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RealStepTest, EveryAllocationEqualsPyTorchs) {
  testing::EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  log.options.kernels = engines::pytorch::Kernels::cuda;
  const auto config = parse_json(log.model, "model");
  const auto architecture = model::build_architecture(*config, "model");
  ASSERT_TRUE(architecture) << to_string(architecture.error());
  const auto run = engines::pytorch::run_train_step(*architecture, log.options, false);
  ASSERT_TRUE(run) << to_string(run.error());
  const std::vector<Allocation> ours = large_allocations(*run);
  for (std::size_t i = 0; i < std::min(ours.size(), log.allocations.size()); ++i) {
    const Allocation& theirs = log.allocations[i];
    ASSERT_TRUE(ours[i].bytes == theirs.bytes && ours[i].live_bytes == theirs.live_bytes)
        << "line " << theirs.line << ": PyTorch +" << theirs.bytes << " live " << theirs.live_bytes << " "
        << theirs.what << "\n  ours +" << ours[i].bytes << " live " << ours[i].live_bytes << " " << ours[i].what;
  }
  EXPECT_EQ(ours.size(), log.allocations.size());
}

INSTANTIATE_TEST_SUITE_P(Recorded, RealStepTest, ::testing::ValuesIn(testing::event_log_names("lab/real-events")),
                         [](const auto& log) { return testing::test_name(log.param); });

}  // namespace
}  // namespace ullage
