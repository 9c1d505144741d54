#include "base/names.h"

#include <gtest/gtest.h>

#include <array>

#include "base/dtype.h"
#include "base/nearest.h"

namespace ullage {
namespace {

TEST(NameTable, GivesEachNameOneIdAndKeepsTheTexts) {
  NameTable names;
  EXPECT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0], "");
  const NameId mm = names.intern("mm");
  EXPECT_EQ(names.intern("mm"), mm);
  EXPECT_NE(names.intern("bmm"), mm);
  EXPECT_EQ(names.intern(""), 0);
  EXPECT_EQ(names[mm], "mm");
  EXPECT_EQ(names[60'000], "") << "an id of another table";
}

TEST(NameTable, WhatDoesNotFitBecomesTheEmptyName) {
  NameTable names;
  for (int i = 0; i < 65'535; ++i) names.intern(std::to_string(i));
  EXPECT_EQ(names.size(), 65'536U);
  EXPECT_EQ(names.intern("one more"), 0);
  EXPECT_EQ(names[names.intern("65534")], "65534") << "those that are in stay in";
}

constexpr std::array<std::string_view, 6> kKnown{"--seq-len", "--step",        "--gpu",
                                                 "--gpus",    "--micro-batch", "--gpu-memory"};

struct Slip {
  const char* wanted;
  std::vector<std::string> nearest;
};

class Nearest : public ::testing::TestWithParam<Slip> {};

TEST_P(Nearest, AreSlipsOfThePenClosestFirst) {
  EXPECT_EQ(nearest_names(GetParam().wanted, kKnown), GetParam().nearest);
}

INSTANTIATE_TEST_SUITE_P(Table, Nearest,
                         ::testing::Values(Slip{"--seq_len", {"--seq-len"}}, Slip{"--SEQ-LEN", {"--seq-len"}},
                                           Slip{"--microbatch", {"--micro-batch"}},
                                           Slip{"--gpu", {"--gpu", "--gpus", "--gpu-memory"}},
                                           Slip{"something quite different", {}}, Slip{"memory", {"--gpu-memory"}}));

TEST(Nearest, WorkIsBounded) {
  const std::string endless(1'000'000, 'a');
  EXPECT_TRUE(nearest_names(endless, kKnown).empty() || nearest_names(endless, kKnown).size() <= 3);
  EXPECT_EQ(nearest_names("--gpu", kKnown, 1).size(), 1U);
}

TEST(DidYouMean, ListsInEnglish) {
  const auto text = [](std::vector<std::string> names) { return did_you_mean(names); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({"a"}), "did you mean a?");
  EXPECT_EQ(text({"a", "b"}), "did you mean a or b?");
  EXPECT_EQ(text({"a", "b", "c"}), "did you mean a, b or c?");
}

TEST(DType, EveryNameReadsBackAsItsType) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8,
                           DType::boolean, DType::u64}) {
    EXPECT_EQ(parse_dtype(name_of(type)), type) << name_of(type);
  }
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("half"), DType::f16);
  EXPECT_EQ(parse_dtype("fp33"), std::nullopt);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::boolean), 1);
  EXPECT_TRUE(is_floating(DType::f16));
  EXPECT_FALSE(is_floating(DType::i64));
  EXPECT_TRUE(is_half(DType::bf16));
  EXPECT_FALSE(is_half(DType::f32));
}

}  // namespace
}  // namespace ullage
