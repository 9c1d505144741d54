#include "speed/decode.h"

#include <gtest/gtest.h>

namespace ullage::speed {
namespace {

TEST(Decode, ReadsAllWeightsForEachToken) {
  // 14 GB at 1,008 GB/s: 72 tokens a second, and arithmetic far from its limit.
  const DecodeWork work{14'000'000'000, 0, decode_flops(7'000'000'000)};
  EXPECT_DOUBLE_EQ(1 / decode_seconds(work, {165e12, 1008e9}), 72);
}

TEST(Decode, ReadsWhatIsKeptOfTheSequence) {
  const DecodeWork work{14'000'000'000, 2'128'000'000, decode_flops(7'000'000'000)};
  EXPECT_DOUBLE_EQ(1 / decode_seconds(work, {165e12, 1008e9}), 62.5);
}

TEST(Decode, IsBoundByArithmeticWithManySequences) {
  const DecodeWork work{14'000'000'000, 0, 1024 * decode_flops(7'000'000'000)};
  EXPECT_DOUBLE_EQ(decode_seconds(work, {143.36e12, 1008e9}), 0.1);
}

}  // namespace
}  // namespace ullage::speed
