// The spliced timeline is the full one, row for row, for every recorded set-up at depths around the limits.
#include <gtest/gtest.h>

#include "engines/pytorch/train.h"
#include "event_log.h"
#include "model/family.h"

namespace ullage {
namespace {

class SpliceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SpliceTest, EqualsTheFullRun) {
  const testing::EventLog log = testing::read_event_log(ULLAGE_TEST_DATA "/" + GetParam() + ".events");
  if (log.model.front() != '{') GTEST_SKIP() << "image networks have no equal layers";
  const auto config = parse_json(log.model, "model");
  if (log.options.llama_adapter > 0) GTEST_SKIP() << "the first layers are of a kind of their own, so all run in full";
  auto coded = model::build_architecture(*config, "model").and_then([&](model::Architecture built) {
    return engines::pytorch::in_code(std::move(built), log.options);
  });
  ASSERT_TRUE(coded) << to_string(coded.error());
  model::Architecture* architecture = &coded->architecture;
  if (architecture->encoder_layers > 0) GTEST_SKIP() << "two stacks of layers run in full";
  if (log.options.offload_activations) GTEST_SKIP() << "layers act on others further back, so all run in full";
  if (architecture->balances_experts) GTEST_SKIP() << "the loss joins what all layers' routers gave";
  if (log.options.tuning.tuner == model::Tuner::prefix) GTEST_SKIP() << "a prefix is as wide as there are layers";
  // One unit more is simulated where a part of the model is frozen.
  const model::Tuning& tuning = coded->options.tuning;
  const bool all_train = tuning.tuner == model::Tuner::none && tuning.frozen.empty() && !tuning.marked;
  const std::size_t simulated = all_train ? 6 : 7;
  // The kinds of layers one after the other, again and again.
  const std::size_t kinds = architecture->kinds.size();
  for (const std::size_t layers : {std::size_t{1}, 5 * kinds, 6 * kinds, 7 * kinds, 8 * kinds - 1, 20 * kinds}) {
    architecture->layers.clear();
    for (std::size_t i = 0; i < layers; ++i) architecture->layers.push_back(static_cast<std::uint8_t>(i % kinds));
    const auto full = engines::pytorch::run_train_step(*architecture, coded->options, false);
    const auto spliced = engines::pytorch::run_train_step(*architecture, coded->options, true);
    ASSERT_TRUE(full && spliced);
    EXPECT_EQ(spliced->spliced, layers / kinds > simulated) << layers << " layers";
    EXPECT_TRUE(memory::identical(full->timeline, spliced->timeline)) << layers << " layers";
    EXPECT_EQ(full->before_step, spliced->before_step);
    EXPECT_EQ(full->after_forward, spliced->after_forward);
    EXPECT_EQ(full->after_backward, spliced->after_backward);
    EXPECT_EQ(full->after_step, spliced->after_step);
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, SpliceTest, ::testing::ValuesIn(testing::event_log_names()),
                         [](const auto& log) { return testing::test_name(log.param); });

}  // namespace
}  // namespace ullage
