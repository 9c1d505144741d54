#include "base/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ullage {
namespace {

std::string_view whole(std::string_view line) { return line; }

std::string_view by_scan(std::string_view text, std::string_view key) {
  std::string_view found;
  for_each_line(text, [&](std::string_view line) {
    if (compare_ignoring_case(line, key) == 0) found = line;
  });
  return found;
}

TEST(Lines, BinarySearchEqualsAScan) {
  // Every sorted text of up to eight lines with every line length from 1 on, with and without a last newline.
  for (int count = 0; count <= 8; ++count) {
    for (int uneven = 0; uneven < 3; ++uneven) {
      std::string text;
      for (int i = 0; i < count; ++i) {
        text +=
            std::string(1, static_cast<char>('B' + 2 * i)) + std::string(static_cast<std::size_t>(i * uneven % 5), 'x');
        text += '\n';
      }
      for (bool ended : {true, false}) {
        const std::string_view view =
            ended || text.empty() ? std::string_view(text) : std::string_view(text).substr(0, text.size() - 1);
        for (char c = 'A'; c <= 'z'; ++c) {
          for (std::size_t tail = 0; tail < 5; ++tail) {
            const std::string key = std::string(1, c) + std::string(tail, 'X');
            EXPECT_EQ(find_sorted_line(view, key, whole), by_scan(view, key)) << key << " in " << view;
          }
        }
      }
    }
  }
}

TEST(Lines, VisitsEachWithoutItsNewline) {
  std::vector<std::string> seen;
  for_each_line("a\n\nbc\nd", [&](std::string_view line) { seen.emplace_back(line); });
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "bc", "d"}));
}

TEST(Lines, ComparesIgnoringCase) {
  EXPECT_EQ(compare_ignoring_case("AbC", "aBc"), 0);
  EXPECT_LT(compare_ignoring_case("ab", "abc"), 0);
  EXPECT_GT(compare_ignoring_case("b", "ABC"), 0);
  EXPECT_GT(compare_ignoring_case("\xc3", "z"), 0) << "bytes above 127 sort last";
}

TEST(Lines, ContainsIgnoringCase) {
  EXPECT_TRUE(contains_ignoring_case("Llama", "LAM"));
  EXPECT_TRUE(contains_ignoring_case("", ""));
  EXPECT_FALSE(contains_ignoring_case("Lla", "llama"));
}

TEST(Lines, TakesWhatIsQuoted) {
  EXPECT_EQ(quoted_after("{\"name\":\"a/b\",", "{\"name\":\""), "a/b");
  EXPECT_EQ(quoted_after("{\"other\":1}", "{\"name\":\""), "");
  EXPECT_EQ(quoted_after("{\"name\":\"cut", "{\"name\":\""), "cut");
}

}  // namespace
}  // namespace ullage
