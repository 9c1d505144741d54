#include "speed/roofline.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::speed {
namespace {

hardware::Gpu card() {
  hardware::Gpu out;
  out.memory_bandwidth_bytes_per_s = 2e12;
  out.peak.bf16_tflops = 100;
  out.peak.fp32_tflops = 10;
  return out;
}

memory::OpRecord op(std::int64_t flops, std::int64_t bytes, memory::Phase phase) {
  return {flops, bytes, 0, 0, 0, memory::kNoLayer, phase};
}

TEST(Roofline, AnOperatorTakesTheLongerOfItsTwoTimes) {
  const auto rates = rates_of(card(), DType::bf16);
  ASSERT_TRUE(rates);
  const std::vector<memory::OpRecord> ops{
      op(100'000'000'000'000, 1, memory::Phase::forward),  // one second of arithmetic
      op(1, 4'000'000'000'000, memory::Phase::backward),   // two of traffic
      op(1, 8'000'000'000'000, memory::Phase::setup),      // before the step
  };
  EXPECT_DOUBLE_EQ(roofline_seconds(ops, *rates), 3.0);
}

TEST(Roofline, TheRateIsThatOfTheType) {
  const auto rates = rates_of(card(), DType::f32);
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->flops_per_s, 1e13);
}

TEST(Roofline, WhatTheCatalogueLacksIsNotGuessed) {
  EXPECT_FALSE(rates_of(card(), DType::f16));
  hardware::Gpu slow = card();
  slow.memory_bandwidth_bytes_per_s.reset();
  EXPECT_FALSE(rates_of(slow, DType::bf16));
}

}  // namespace
}  // namespace ullage::speed
