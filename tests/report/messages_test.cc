// Both languages say everything, with the same places.
#include "report/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ullage::report {
namespace {

std::multiset<std::string> places(std::string_view text) {
  std::multiset<std::string> out;
  for (std::size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    out.insert(std::string(text.substr(open, close - open + 1)));
  }
  return out;
}

bool has_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xE3; });
}

TEST(Messages, EveryKeyHasBothLanguagesWithTheSamePlaces) {
  for (const TextRow& row : all_texts()) {
    EXPECT_FALSE(row.en.empty()) << row.key;
    EXPECT_FALSE(row.zh.empty()) << row.key;
    EXPECT_EQ(places(row.en), places(row.zh)) << row.key;
  }
}

TEST(Messages, ChineseIsChineseAndEnglishIsNot) {
  for (const TextRow& row : all_texts()) {
    EXPECT_TRUE(has_chinese(row.zh)) << row.key;
    EXPECT_FALSE(has_chinese(row.en)) << row.key;
  }
}

TEST(Messages, KeysAreUnique) {
  std::set<std::string_view> keys;
  for (const TextRow& row : all_texts()) EXPECT_TRUE(keys.insert(row.key).second) << row.key;
}

TEST(Messages, PlacesAreFilledByName) {
  const Message message{Text::title_train_on,
                        {{"gpu", std::string("card")}, {"model", std::string("net")}, {"count", std::int64_t{2}}}};
  EXPECT_EQ(render(message), "net: one training step on 2 x card");
  EXPECT_EQ(render(message, {Language::zh, Unit::gib}), "net：一个训练步，2 × card");
}

TEST(Messages, ValuesFollowTheWording) {
  const Message message{Text::model_line,
                        {{"family", std::string("f")}, {"parameters", Count{8030261248}}, {"bytes", Bytes{kGiB}}}};
  EXPECT_EQ(render(message), "f, 8,030,261,248 parameters, 1.00 GiB of weights");
  EXPECT_EQ(render(message, {Language::en, Unit::bytes}), "f, 8,030,261,248 parameters, 1073741824 B of weights");
}

TEST(Messages, APlaceWithoutValueStaysVisible) { EXPECT_EQ(render({Text::layer_number, {}}), "layer {layer}"); }

TEST(Messages, SeparatorsStandBetweenThousands) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(-1234567), "-1,234,567");
  EXPECT_EQ(with_separators(-123), "-123");
}

}  // namespace
}  // namespace ullage::report
