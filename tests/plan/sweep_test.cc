#include "plan/sweep.h"

#include <gtest/gtest.h>

namespace ullage::plan {
namespace {

using Values = std::vector<std::string>;

struct Case {
  const char* text;
  const char* option;
  Values values;
};

class Read : public ::testing::TestWithParam<Case> {};

TEST_P(Read, GivesAnOptionAndItsValues) {
  const auto sweep = parse_sweep(GetParam().text);
  ASSERT_TRUE(sweep) << sweep.error().message;
  EXPECT_EQ(sweep->option, GetParam().option);
  EXPECT_EQ(sweep->values, GetParam().values);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Read,
    ::testing::Values(Case{"micro-batch=1..4", "--micro-batch", {"1", "2", "3", "4"}},
                      Case{"--micro_batch=7..7", "--micro-batch", {"7"}},
                      Case{"seq-len=512..4096", "--seq-len", {"512", "1024", "2048", "4096"}},
                      Case{"seq-len=500..3000", "--seq-len", {"500", "1000", "2000", "3000"}},
                      Case{"precision=fp32,bf16", "--precision", {"fp32", "bf16"}},
                      Case{"gpu=h100-sxm-80gb", "--gpu", {"h100-sxm-80gb"}},
                      Case{"lora=0..100", "--lora", {"0", "1", "2", "4", "8", "16", "32", "64", "100"}},
                      Case{"seq-len=4611686018427387904..9223372036854775807",
                           "--seq-len",
                           {"4611686018427387904", "9223372036854775807"}}));

class Wrong : public ::testing::TestWithParam<const char*> {};

TEST_P(Wrong, IsSaidInOneLine) {
  const auto sweep = parse_sweep(GetParam());
  ASSERT_FALSE(sweep);
  EXPECT_EQ(sweep.error().where, "--sweep");
  EXPECT_NE(sweep.error().message.find("write OPTION=A..B"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, Wrong,
                         ::testing::Values("", "micro-batch", "=1,2", "--=1", "micro-batch=", "micro-batch=1,,2",
                                           "micro-batch=4..1", "micro-batch=1..x", "micro-batch=..", "m=-1..4",
                                           "m=1..99999999999999999999"));

TEST(Sweep, HasAnEnd) {
  std::string text = "micro-batch=1";
  for (int i = 2; i <= 257; ++i) text += "," + std::to_string(i);
  EXPECT_FALSE(parse_sweep(text));
}

}  // namespace
}  // namespace ullage::plan
