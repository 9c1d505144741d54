// Every allocation of generate(), and the bytes held after each, equals the log of transformers' own.
#include <gtest/gtest.h>

#include "engines/transformers/serve.h"
#include "event_log.h"
#include "memory/attribution.h"
#include "model/family.h"

namespace ullage {
namespace {

using testing::Allocation;
using testing::EventLog;

Expected<engines::transformers::ServeRun> run(const EventLog& log) {
  return parse_json(log.model, "model")
      .and_then([](const Json& config) { return model::build_architecture(config, "model"); })
      .and_then([&](const model::Architecture& architecture) {
        return engines::transformers::run_generation(architecture, log.serving);
      });
}

// Own bytes, not rounded, as the log counts them.
std::vector<Allocation> allocations_of(const engines::transformers::ServeRun& served) {
  std::vector<Allocation> out;
  std::int64_t live = 0;
  const memory::Timeline& timeline = served.run.timeline;
  for (std::uint32_t i = 0; i < timeline.events.size(); ++i) {
    const memory::Event& event = timeline.events[i];
    const memory::Block& block = timeline.blocks[event.block];
    if (event.kind == memory::EventKind::free) live -= block.requested_bytes;
    if (event.kind != memory::EventKind::alloc) continue;
    live += block.requested_bytes;
    if (i < served.run.before_step) continue;
    const memory::OpRecord& op = timeline.ops[block.op];
    out.push_back({block.requested_bytes, live,
                   std::string(timeline.names[op.module]) + " " + std::string(timeline.names[op.name]), i});
  }
  return out;
}

class GenerationLogTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GenerationLogTest, EveryAllocationAndTheBytesHeldAfterItEqualTransformers) {
  const EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  const auto served = run(log);
  ASSERT_TRUE(served) << to_string(served.error());
  const std::vector<Allocation> ours = allocations_of(*served);
  for (std::size_t i = 0; i < std::min(ours.size(), log.allocations.size()); ++i) {
    const Allocation& theirs = log.allocations[i];
    ASSERT_TRUE(ours[i].bytes == theirs.bytes && ours[i].live_bytes == theirs.live_bytes)
        << "line " << theirs.line << ": transformers +" << theirs.bytes << " live " << theirs.live_bytes << " "
        << theirs.what << "\n  ours +" << ours[i].bytes << " live " << ours[i].live_bytes << " " << ours[i].what;
  }
  EXPECT_EQ(ours.size(), log.allocations.size());
}

TEST_P(GenerationLogTest, PeakAndMomentsEqualTransformers) {
  const EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  auto served = run(log);
  ASSERT_TRUE(served) << to_string(served.error());
  memory::Timeline& timeline = served->run.timeline;
  const std::uint32_t asked[] = {served->run.before_step, static_cast<std::uint32_t>(timeline.events.size())};
  timeline.granularity_bytes = 512;
  EXPECT_EQ(memory::sweep(timeline, asked).highest[1].bytes, log.peak_blocks);
  timeline.granularity_bytes = 1;
  EXPECT_EQ(memory::sweep(timeline, asked).highest[1].bytes, log.peak);
  for (const testing::PhaseLine& phase : log.phases) {
    if (phase.name == "end") continue;
    const std::uint32_t event = phase.name == "before_prefill"  ? served->run.before_step
                                : phase.name == "after_prefill" ? served->after_prefill
                                                                : served->after_decode;
    const memory::Moment moment = memory::moment_at(timeline, event);
    EXPECT_EQ(moment.bytes, phase.live) << phase.name;
    EXPECT_EQ(moment.by_component[static_cast<std::size_t>(memory::Component::parameters)], phase.parameters)
        << phase.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, GenerationLogTest, ::testing::ValuesIn(testing::event_log_names("generate")),
                         [](const auto& log) { return testing::test_name(log.param); });

}  // namespace
}  // namespace ullage
