#include "report/layout.h"

#include <gtest/gtest.h>

namespace ullage::report {
namespace {

TEST(Layout, ChineseTakesTwoColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("显存"), 4U);
  EXPECT_EQ(display_width("│×…"), 3U);
  EXPECT_EQ(display_width(""), 0U);
}

TEST(Layout, PaddingCountsColumns) {
  EXPECT_EQ(pad_right("显存", 6), "显存  ");
  EXPECT_EQ(pad_left("7", 3), "  7");
  EXPECT_EQ(pad_left("1234", 3), "1234");
}

TEST(Layout, LongTextLosesItsMiddle) {
  EXPECT_EQ(shorten("abcdefghij", 10, true), "abcdefghij");
  EXPECT_EQ(shorten("abcdefghijk", 7, true), "abc…ijk");
  EXPECT_EQ(shorten("abcdefghijk", 7, false), "ab...jk");
  EXPECT_LE(display_width(shorten("显存显存显存显存", 7, true)), 7U);
}

TEST(Layout, BarsGrowInEighths) {
  EXPECT_EQ(bar(0, 8, true), "");
  EXPECT_EQ(bar(1, 4, true), "████");
  EXPECT_EQ(bar(0.5, 3, true), "█▌");
  EXPECT_EQ(bar(1e-9, 8, true), "▏");
  EXPECT_EQ(bar(0.5, 4, false), "##");
  EXPECT_EQ(bar(1e-9, 8, false), "#");
  EXPECT_EQ(bar(7, 2, true), "██");
}

TEST(Layout, WrappingBreaksAtBlanksAndBetweenCharacters) {
  EXPECT_EQ(wrap("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrap("显存峰值，激活值", 9, 0), "显存峰\n值，激活\n值");
  EXPECT_EQ(wrap("unbreakablelongword", 5, 0), "unbreakablelongword");
  EXPECT_EQ(wrap("", 5, 0), "");
}

}  // namespace
}  // namespace ullage::report
