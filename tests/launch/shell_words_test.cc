// Commands as a POSIX shell takes them apart; what is expected is what dash says of the same text.
#include "launch/shell_words.h"

#include <gtest/gtest.h>

namespace ullage::launch {
namespace {

using Words = std::vector<std::string>;

Words only_words(std::string_view text) {
  const auto commands = split_shell(text);
  EXPECT_TRUE(commands) << text;
  if (!commands || commands->empty()) return {};
  return commands->back().words;
}

TEST(ShellWords, QuotesAndEscapes) {
  EXPECT_EQ(only_words(R"(a 'b c' "d \"e\"" f\ g h'i'"j")"), (Words{"a", "b c", "d \"e\"", "f g", "hij"}));
  EXPECT_EQ(only_words(R"(a '' "" b)"), (Words{"a", "", "", "b"}));
  EXPECT_EQ(only_words(R"(a '{"k": "v w"}' "{\"k\": 1}")"), (Words{"a", R"({"k": "v w"})", R"({"k": 1})"}));
  EXPECT_EQ(only_words(R"(a "\n" "\$x" '\n')"), (Words{"a", "\\n", "$x", "\\n"}));
}

TEST(ShellWords, LinesThatGoOn) {
  EXPECT_EQ(only_words("a \\\n  --b 1 \\\n  --c"), (Words{"a", "--b", "1", "--c"}));
  EXPECT_EQ(only_words("a \\ \n --b"), (Words{"a", "--b"}));  // forgiven: blanks behind the backslash
  EXPECT_EQ(only_words("a \\\r\n --b"), (Words{"a", "--b"}));
  EXPECT_EQ(only_words("ab\\\ncd"), (Words{"abcd"}));
  EXPECT_EQ(only_words("a b \\"), (Words{"a", "b"}));
}

TEST(ShellWords, CommentsRedirectionsPrompts) {
  EXPECT_EQ(only_words("a b # c\n"), (Words{"a", "b"}));
  EXPECT_EQ(only_words("a b#c"), (Words{"a", "b#c"}));
  EXPECT_EQ(only_words("a > log 2>&1 b"), (Words{"a", "b"}));
  EXPECT_EQ(only_words("a &> log"), (Words{"a"}));
  EXPECT_EQ(only_words("a 2 >log"), (Words{"a", "2"}));
  EXPECT_EQ(only_words("$ a b"), (Words{"a", "b"}));
}

TEST(ShellWords, CommandsArePartedByOperators) {
  const auto commands = split_shell("cd x && a 1; b 2 | tee c & d");
  ASSERT_TRUE(commands);
  ASSERT_EQ(commands->size(), 5U);
  EXPECT_EQ((*commands)[1].words, (Words{"a", "1"}));
  EXPECT_EQ((*commands)[4].words, (Words{"d"}));
}

TEST(ShellWords, Variables) {
  EXPECT_EQ(only_words("M=a/b\nA='--x 1 --y'\nrun $M $A \"$A\" ${M}c ${N:-7} $N"),
            (Words{"run", "a/b", "--x", "1", "--y", "--x 1 --y", "a/bc", "7", "$N"}));
  EXPECT_EQ(only_words("run $(nproc --all) \"$(pwd)/m\""), (Words{"run", "$(nproc --all)", "$(pwd)/m"}));
  EXPECT_EQ(only_words("run '$M' $"), (Words{"run", "$M", "$"}));
}

TEST(ShellWords, EnvironmentOfACommand) {
  const auto commands = split_shell("export A=1 B='2 3'\nC=4\nD=5 A=6 run C=7");
  ASSERT_TRUE(commands);
  ASSERT_EQ(commands->size(), 1U);
  EXPECT_EQ(commands->front().environment, (Variables{{"A", "6"}, {"B", "2 3"}, {"D", "5"}}));
  EXPECT_EQ(commands->front().words, (Words{"run", "C=7"}));
}

TEST(ShellWords, WhatIsRefused) {
  for (const char* text : {"a 'b", "a \"b", "a \"b $(c"}) EXPECT_FALSE(split_shell(text)) << text;
  EXPECT_FALSE(split_shell(std::string(kMostShellBytes + 1, 'a')));
  // Each line doubles it.
  std::string growing = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) growing += "A=$A$A\n";
  const auto grown = split_shell(growing);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, ErrorCode::too_large);
}

TEST(ShellWords, WhatIsWrittenIsReadBack) {
  const Words words{"a", "", "b c", "it's", R"({"k": [1, 2]})", "$x", "a=b", "1,2", "\\"};
  EXPECT_EQ(only_words(shell_line(words)), words);
}

}  // namespace
}  // namespace ullage::launch
