// What is held at each moment of a compiled step equals the log of inductor's own wrappers; their order within a
// layer's backward pass, which inductor chooses by sizes, is not followed, so that the peak may differ a little.
#include <gtest/gtest.h>

#include "engines/pytorch/train.h"
#include "event_log.h"
#include "memory/attribution.h"
#include "model/family.h"

namespace ullage {
namespace {

using testing::EventLog;

class CompiledLogTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CompiledLogTest, WhatIsHeldAtEachMomentEqualsInductors) {
  const EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  ASSERT_TRUE(log.options.compile);
  auto architecture = parse_json(log.model, "model").and_then([](const Json& config) {
    return model::build_architecture(config, "model");
  });
  ASSERT_TRUE(architecture) << to_string(architecture.error());
  const auto model = engines::pytorch::in_code(*std::move(architecture), log.options);
  ASSERT_TRUE(model) << to_string(model.error());
  auto run = engines::pytorch::run_train_step(model->architecture, model->options);
  ASSERT_TRUE(run) << to_string(run.error());
  run->timeline.granularity_bytes = 1;
  for (const testing::PhaseLine& phase : log.phases) {
    const std::uint32_t event = phase.name == "before_step"      ? run->before_step
                                : phase.name == "after_forward"  ? run->after_forward
                                : phase.name == "after_backward" ? run->after_backward
                                                                 : run->after_step;
    const memory::Moment moment = memory::moment_at(run->timeline, event);
    const auto part = [&](memory::Component c) { return moment.by_component[static_cast<std::size_t>(c)]; };
    EXPECT_EQ(moment.bytes, phase.live) << phase.name;
    EXPECT_EQ(part(memory::Component::gradients), phase.gradients) << phase.name;
  }
  const std::uint32_t asked[] = {run->before_step, static_cast<std::uint32_t>(run->timeline.events.size())};
  const auto peak = static_cast<double>(memory::sweep(run->timeline, asked).highest[1].bytes);
  // inductor keeps an unpacked weight's buffer for the next weight of its size, which small layers feel.
  const bool unpacks = log.options.tuning.base != model::BaseFormat::plain;
  EXPECT_NEAR(peak / static_cast<double>(log.peak), 1, unpacks ? 0.06 : 0.02);
}

INSTANTIATE_TEST_SUITE_P(Torchtune, CompiledLogTest,
                         ::testing::ValuesIn(testing::event_log_names("lab/compiled-events")),
                         [](const auto& log) { return testing::test_name(log.param); });

}  // namespace
}  // namespace ullage
