#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "cli/help.h"

namespace ullage::cli {
namespace {

Expected<Arguments> train(std::vector<std::string> words) { return parse_arguments(*find_command("train"), words); }

TEST(Arguments, ValuesStandBehindABlankOrAnEqualsSign) {
  const auto arguments = train({"net", "--seq-len", "4", "--gpu=card", "--json"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->text("--seq-len"), "4");
  EXPECT_EQ(arguments->text("--gpu"), "card");
  EXPECT_TRUE(arguments->has("--json"));
  EXPECT_FALSE(arguments->has("--quiet"));
  EXPECT_EQ(arguments->positionals(), std::vector<std::string>{"net"});
}

TEST(Arguments, RepeatableOptionsKeepTheirOrder) {
  const auto arguments = train({"--set", "a=1", "net", "--set", "b=[1,2]"});
  ASSERT_TRUE(arguments) << to_string(arguments.error());
  EXPECT_EQ(arguments->all("--set"), (std::vector<std::string>{"a=1", "b=[1,2]"}));
}

TEST(Arguments, NumbersAreReadWhole) {
  Arguments arguments;
  arguments.add("--n", "12x");
  arguments.add("--m", "7");
  arguments.add("--x", "1e3");
  arguments.add("--y", "nan");
  EXPECT_FALSE(arguments.integer("--n", 1, 0, 100));
  EXPECT_EQ(arguments.integer("--m", 1, 0, 100).value(), 7);
  EXPECT_FALSE(arguments.integer("--m", 1, 8, 100));
  EXPECT_EQ(arguments.integer("--absent", 5, 0, 1).value(), 5);
  EXPECT_EQ(arguments.number("--x", 0).value(), 1000.0);
  EXPECT_FALSE(arguments.number("--y", 0));
}

TEST(OptionTable, DefaultsAndLaterValuesDoNotOverlap) {
  for (const CommandSpec& command : commands()) {
    std::set<std::string_view> names;
    for (const OptionSpec& option : command.options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
      EXPECT_FALSE(has_word(command.later, ' ', option.name)) << option.name;
      for_each_word(option.choices, '|',
                    [&](std::string_view value) { EXPECT_FALSE(has_word(option.later, '|', value)) << value; });
    }
  }
}

// "fused" is no loss yet and an implementation of optimizers already.
bool is_choice_somewhere(const CommandSpec& command, std::string_view value) {
  for (const OptionSpec& option : command.options) {
    if (has_word(option.choices, '|', value)) return true;
  }
  return false;
}

// Whether a text holds the word by itself: "fp8" is no part of "adamw-fp8".
bool holds_word(const std::string& text, std::string_view word) {
  const auto joins = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !joins(text[at - 1])) && (end == text.size() || !joins(text[end]))) return true;
  }
  return false;
}

TEST(Help, NamesEveryOptionAndNothingThatIsNotBuilt) {
  for (const CommandSpec& command : commands()) {
    for (const auto language : {report::Language::en, report::Language::zh}) {
      const std::string help = command_help(command, language);
      for (const OptionSpec& option : command.options) {
        EXPECT_NE(help.find(option.name), std::string::npos) << option.name;
        for_each_word(option.later, '|', [&](std::string_view value) {
          if (value == "max" || is_choice_somewhere(command, value)) return;
          EXPECT_FALSE(holds_word(help, value)) << value;
        });
      }
      for_each_word(command.later, ' ', [&](std::string_view option) {
        EXPECT_EQ(help.find(std::string(option) + " "), std::string::npos) << option;
      });
    }
  }
}

}  // namespace
}  // namespace ullage::cli
