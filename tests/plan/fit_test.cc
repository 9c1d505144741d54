#include "plan/fit.h"

#include <gtest/gtest.h>

#include <map>

namespace ullage::plan {
namespace {

// A model of 100 bytes (60 in eight bits, 35 in four) whose tokens take a byte each, its layers shared out evenly.
FitHeadroom on_cards_of(std::int64_t bytes) {
  return [bytes](const FitSetup& setup, std::int64_t tokens) -> Expected<std::int64_t> {
    const std::map<std::string_view, std::int64_t> weights{{"", 100}, {"int8", 60}, {"nf4", 35}};
    return bytes - (weights.at(setup.quantization) + tokens) / setup.cards;
  };
}

std::vector<FitChoice> choose(std::int64_t card_bytes, const FitRange& range = {10, 50}) {
  auto chosen = choose_fits(range, on_cards_of(card_bytes));
  EXPECT_TRUE(chosen);
  return chosen ? *chosen : std::vector<FitChoice>{};
}

TEST(Fit, LeavesAModelAsItIsWhereItFits) {
  const auto chosen = choose(120);
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].setup.quantization, "");
  EXPECT_EQ(chosen[0].setup.cards, 1);
  EXPECT_EQ(chosen[0].context.size, 20);
}

TEST(Fit, StopsAtTheModelsPositions) {
  const auto chosen = choose(1000);
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].context.size, 50);
  EXPECT_TRUE(chosen[0].context.at_the_limit);
}

TEST(Fit, QuantisesOnOneCardAndNamesTheCardsThatNeedNone) {
  const auto chosen = choose(72);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].setup.quantization, "int8");
  EXPECT_EQ(chosen[0].context.size, 12);
  EXPECT_EQ(chosen[1].setup.quantization, "");
  EXPECT_EQ(chosen[1].setup.cards, 2);
  EXPECT_EQ(chosen[1].context.size, 45);  // 2 · 72 + 1 - 100: a half byte is dropped
}

TEST(Fit, QuantisesOnSeveralCardsWhereNothingElseHelps) {
  const auto chosen = choose(6);
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].setup.quantization, "nf4");
  EXPECT_EQ(chosen[0].setup.cards, 8);
}

TEST(Fit, NamesFewerCardsThatTakeQuantisedWeightsWhereOneDoesNot) {
  const auto chosen = choose(30);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].setup.quantization, "nf4");
  EXPECT_EQ(chosen[0].setup.cards, 2);
  EXPECT_EQ(chosen[0].context.size, 26);  // 2 · 30 + 1 - 35
  EXPECT_EQ(chosen[1].setup.quantization, "");
  EXPECT_EQ(chosen[1].setup.cards, 4);
  EXPECT_EQ(chosen[1].context.size, 23);  // 4 · 30 + 3 - 100
}

// Seven cards of 18 bytes hold 100 and ten tokens; six hold 108 bytes.
TEST(Fit, TriesAsManyCardsAsThereAre) {
  const auto seven = choose(18, {10, 50, 7});
  ASSERT_FALSE(seven.empty());
  EXPECT_EQ(seven.back().setup.quantization, "");
  EXPECT_EQ(seven.back().setup.cards, 7);
  const auto one = choose(72, {10, 50, 1});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].setup.cards, 1);
}

TEST(Fit, MayBeImpossible) { EXPECT_TRUE(choose(2).empty()); }

TEST(Fit, PassesOverWhatCannotBeRun) {
  const auto run = on_cards_of(72);
  const auto chosen = choose_fits({10, 50}, [&](const FitSetup& setup, std::int64_t tokens) -> Expected<std::int64_t> {
    if (setup.quantization == "int8") return fail(ErrorCode::unsupported, "--quantization", "int8");
    return run(setup, tokens);
  });
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().setup.quantization, "nf4");
}

TEST(Fit, SaysWhyNothingCanBeRun) {
  const auto none = choose_fits({1, 2}, [](const FitSetup&, std::int64_t) -> Expected<std::int64_t> {
    return fail(ErrorCode::unsupported, "family", "no forward pass");
  });
  ASSERT_FALSE(none);
  EXPECT_EQ(to_string(none.error()), "family: no forward pass");
  const auto wrong = choose_fits({1, 2}, [](const FitSetup&, std::int64_t) -> Expected<std::int64_t> {
    return fail(ErrorCode::malformed, "config.json", "broken");
  });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace ullage::plan
