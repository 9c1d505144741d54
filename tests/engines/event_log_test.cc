// The whole sequence of allocations of small models, and the bytes held after each, equals PyTorch's own log.
#include "event_log.h"

#include <gtest/gtest.h>

#include "engines/pytorch/train.h"
#include "model/family.h"

namespace ullage {
namespace {

using testing::Allocation;
using testing::EventLog;

Expected<model::Architecture> architecture_of(const std::string& model) {
  if (model.front() != '{')
    return model::build_architecture(Json{{"model_type", "torchvision"}, {"arch", model}}, model);
  return parse_json(model, "model").and_then([](const Json& config) {
    return model::build_architecture(config, "model");
  });
}

Expected<engines::pytorch::CodedModel> model_of(const EventLog& log) {
  return architecture_of(log.model).and_then([&](model::Architecture architecture) {
    return engines::pytorch::in_code(std::move(architecture), log.options);
  });
}

// Own bytes, not rounded, as the log counts them.
std::vector<Allocation> allocations_of(const engines::pytorch::TrainRun& run) {
  std::vector<Allocation> out;
  std::int64_t live = 0;
  const memory::Timeline& timeline = run.timeline;
  for (std::uint32_t i = 0; i < timeline.events.size(); ++i) {
    const memory::Event& event = timeline.events[i];
    if (event.space != memory::Space::device) continue;
    const memory::Block& block = timeline.blocks[event.block];
    if (event.kind == memory::EventKind::free) live -= block.requested_bytes;
    if (event.kind != memory::EventKind::alloc) continue;
    live += block.requested_bytes;
    if (i < run.before_step) continue;
    const memory::OpRecord& op = timeline.ops[block.op];
    out.push_back({block.requested_bytes, live,
                   std::string(timeline.names[op.module]) + " " + std::string(timeline.names[op.name]), i});
  }
  return out;
}

// Highest, of copies on the host.
std::int64_t offloaded_bytes(const memory::Timeline& timeline) {
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const memory::Event& event : timeline.events) {
    if (event.space != memory::Space::host_pinned || event.kind > memory::EventKind::free) continue;
    const std::int64_t bytes = timeline.blocks[event.block].requested_bytes;
    live += event.kind == memory::EventKind::alloc ? bytes : -bytes;
    most = std::max(most, live);
  }
  return most;
}

class EventLogTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EventLogTest, EveryAllocationAndTheBytesHeldAfterItEqualPyTorchs) {
  const EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  const auto model = model_of(log);
  ASSERT_TRUE(model) << to_string(model.error());
  auto run = engines::pytorch::run_train_step(model->architecture, model->options, false);
  ASSERT_TRUE(run) << to_string(run.error());
  const std::vector<Allocation> ours = allocations_of(*run);
  for (std::size_t i = 0; i < std::min(ours.size(), log.allocations.size()); ++i) {
    const Allocation& theirs = log.allocations[i];
    ASSERT_TRUE(ours[i].bytes == theirs.bytes && ours[i].live_bytes == theirs.live_bytes)
        << "line " << theirs.line << ": PyTorch +" << theirs.bytes << " live " << theirs.live_bytes << " "
        << theirs.what << "\n  ours +" << ours[i].bytes << " live " << ours[i].live_bytes << " " << ours[i].what;
  }
  EXPECT_EQ(ours.size(), log.allocations.size());
}

TEST_P(EventLogTest, PhasesAndTheirComponentsEqualPyTorchs) {
  const EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  const auto model = model_of(log);
  ASSERT_TRUE(model) << to_string(model.error());
  auto run = engines::pytorch::run_train_step(model->architecture, model->options);
  ASSERT_TRUE(run) << to_string(run.error());
  const std::uint32_t asked[] = {run->before_step, static_cast<std::uint32_t>(run->timeline.events.size())};
  run->timeline.granularity_bytes = 512;
  EXPECT_EQ(memory::sweep(run->timeline, asked).highest[1].bytes, log.peak_blocks);
  run->timeline.granularity_bytes = 1;
  EXPECT_EQ(memory::sweep(run->timeline, asked).highest[1].bytes, log.peak);
  EXPECT_EQ(offloaded_bytes(run->timeline), log.offloaded);
  for (const testing::PhaseLine& phase : log.phases) {
    const std::uint32_t event = phase.name == "before_step"      ? run->before_step
                                : phase.name == "after_forward"  ? run->after_forward
                                : phase.name == "after_backward" ? run->after_backward
                                                                 : run->after_step;
    const memory::Moment moment = memory::moment_at(run->timeline, event);
    const auto part = [&](memory::Component c) { return moment.by_component[static_cast<std::size_t>(c)]; };
    EXPECT_EQ(moment.bytes, phase.live) << phase.name;
    EXPECT_EQ(part(memory::Component::parameters), phase.parameters) << phase.name;
    EXPECT_EQ(part(memory::Component::gradients), phase.gradients) << phase.name;
    EXPECT_EQ(part(memory::Component::optimizer), phase.optimizer) << phase.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, EventLogTest, ::testing::ValuesIn(testing::event_log_names()),
                         [](const auto& log) { return testing::test_name(log.param); });
INSTANTIATE_TEST_SUITE_P(Cpu, EventLogTest, ::testing::ValuesIn(testing::event_log_names("lab/cpu-events")),
                         [](const auto& log) { return testing::test_name(log.param); });

}  // namespace
}  // namespace ullage
