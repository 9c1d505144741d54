#include "hardware/power.h"

#include <gtest/gtest.h>

#include "base/lines.h"
#include "data/power_supplies.h"
#include "hardware/catalogue.h"

namespace ullage::hardware {
namespace {

PowerNeed need(std::string_view card, std::int64_t count) {
  const auto gpu = find_gpu(card);
  EXPECT_TRUE(gpu) << card;
  const auto out = power_need(*gpu, count);
  EXPECT_TRUE(out) << card;
  return out.value_or(PowerNeed{});
}

TEST(Power, IsTheVendorsRecommendationForOneCard) {
  // https://www.tomshardware.com/news/1200w-power-requirement-rtx-4090: 450 W, 850 W recommended.
  EXPECT_EQ(need("rtx-4090", 1).cards_w, 450);
  EXPECT_EQ(need("rtx-4090", 1).supply_w, 850);
  EXPECT_TRUE(need("rtx-4090", 1).recommended);
}

TEST(Power, AddsFurtherCardsAtTheirBoardPower) {
  EXPECT_EQ(need("rtx-4090", 3).cards_w, 1350);
  EXPECT_EQ(need("rtx-4090", 3).supply_w, 1750);
  EXPECT_EQ(need("rtx-5090", 2).supply_w, 1600);  // 1000 + 575, in steps of 50
}

TEST(Power, LeavesRoomForTheMachineWhereNobodyRecommends) {
  const PowerNeed a6000 = need("rtx-a6000", 1);
  EXPECT_EQ(a6000.cards_w, 300);
  EXPECT_EQ(a6000.supply_w, 750);
  EXPECT_FALSE(a6000.recommended);
}

TEST(Power, NamesNoSupplyForServersAndLaptops) {
  EXPECT_FALSE(need("h100-sxm-80gb", 8).supply_w.has_value());
  EXPECT_EQ(need("h100-sxm-80gb", 8).cards_w, 5600);
  EXPECT_FALSE(need("rtx-4090-laptop", 1).supply_w.has_value());
}

TEST(Power, CountsABoardOfTwoDevicesOnce) {
  const auto gpu = find_gpu("mi250x");
  ASSERT_TRUE(gpu);
  ASSERT_EQ(gpu->devices_per_card, 2);
  EXPECT_EQ(power_need(*gpu, 2)->cards_w, *gpu->tdp_w);
  EXPECT_EQ(power_need(*gpu, 3)->cards_w, 2 * *gpu->tdp_w);
}

TEST(Power, EveryRowNamesACardAndASource) {
  std::string before;
  for_each_line(data::power_supplies(), [&](std::string_view line) {
    const std::string id(quoted_after(line, R"({"id":")"));
    EXPECT_LT(before, id);
    before = id;
    const auto gpu = find_gpu(id);
    ASSERT_TRUE(gpu) << id;
    const auto read = parse_power_need(data::power_supplies(), *gpu, 1);
    ASSERT_TRUE(read && *read) << id;
    EXPECT_TRUE((*read)->recommended) << id;
    EXPECT_GE((*read)->supply_w, (*read)->cards_w) << id;
  });
}

TEST(Power, RefusesARowWithoutItsFigure) {
  const auto gpu = find_gpu("rtx-4090");
  ASSERT_TRUE(gpu);
  EXPECT_FALSE(parse_power_need(R"({"id":"rtx-4090","source":"x"})", *gpu, 1));
  EXPECT_FALSE(parse_power_need(R"({"id":"rtx-4090",)", *gpu, 1));
}

}  // namespace
}  // namespace ullage::hardware
