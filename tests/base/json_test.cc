#include "base/json.h"

#include <gtest/gtest.h>

namespace ullage {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_json(text, "config.json");
  return parsed ? "" : to_string(parsed.error());
}

TEST(ParseJson, SyntaxErrorsNameTheByte) {
  EXPECT_EQ(error_of("{\"a\": }"), "config.json: byte 7: not valid JSON here; check that the file is whole");
  EXPECT_EQ(error_of("{\"a\": 1"), "config.json: byte 8: not valid JSON here; check that the file is whole");
  EXPECT_EQ(error_of(""), "config.json: byte 1: not valid JSON here; check that the file is whole");
  EXPECT_EQ(error_of("{} x"), "config.json: byte 4: not valid JSON here; check that the file is whole");
  EXPECT_EQ(error_of(std::string_view("{\"a\":\"\xff\"}")),
            "config.json: byte 7: not valid JSON here; check that the file is whole");
}

TEST(ParseJson, DepthIsLimitedBeforeTheParserRecurses) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_EQ(error_of(nested(kMaxJsonDepth)), "");
  EXPECT_EQ(error_of(nested(kMaxJsonDepth + 1)),
            "config.json: nested deeper than 64 levels; this is not a model's configuration");
  EXPECT_NE(error_of(std::string(5'000'000, '[')), "");
  EXPECT_EQ(error_of("{\"a\": \"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"}"), "")
      << "brackets in a text";
}

TEST(ParseJson, SizeIsLimited) {
  const std::string large(static_cast<std::size_t>(kMaxJsonBytes) + 1, ' ');
  const auto parsed = parse_json(large, "config.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::too_large);
}

class Integer : public ::testing::Test {
 protected:
  std::string error_of(const char* value) const {
    const Json json = Json::parse(std::string("{\"n\":") + value + "}");
    const auto read = JsonObject(json, "c").integer("n", 1, 100);
    return read ? std::to_string(*read) : to_string(read.error());
  }
};

TEST_F(Integer, IsWholeAndInRange) {
  EXPECT_EQ(error_of("1"), "1");
  EXPECT_EQ(error_of("100"), "100");
  EXPECT_EQ(error_of("12.0"), "12");
  EXPECT_EQ(error_of("0"), "c: n: 0 is out of range; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("101"), "c: n: 101 is out of range; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("-5"), "c: n: -5 is out of range; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("18446744073709551615"),
            "c: n: 18446744073709551615 is out of range; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("1.5"), "c: n: 1.5 is not a whole number; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("1e300"), "c: n: 1e+300 is not a whole number; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("\"7\""), "c: n: \"7\" is not a number; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("true"), "c: n: true is not a number; expected a whole number from 1 to 100");
  EXPECT_EQ(error_of("null"), "c: n: missing; this kind of model cannot be built without it");
}

TEST(JsonObject, AbsentAndNullGiveTheFallback) {
  const Json json =
      Json::parse(R"({"null": null, "text": "x", "list": ["a", "b"], "inner": {"deep": 3}, "yes": true, "real": 0.5})");
  const JsonObject object(json, "c");
  EXPECT_EQ(object.integer("absent", 7, 1, 9).value(), 7);
  EXPECT_EQ(object.integer("null", 7, 1, 9).value(), 7);
  EXPECT_FALSE(object.has("null"));
  EXPECT_TRUE(object.has("text"));
  EXPECT_EQ(object.string("absent", "d").value(), "d");
  EXPECT_EQ(object.string("text", "d").value(), "x");
  EXPECT_EQ(object.boolean("absent", true).value(), true);
  EXPECT_EQ(object.number("real", 1).value(), 0.5);
  EXPECT_EQ(object.strings("list").value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(object.strings("absent").value().empty());
}

TEST(JsonObject, AWrongTypeNamesThePathOfTheKey) {
  const Json json = Json::parse(R"({"inner": {"deep": "x", "list": [1]}, "text": "x"})");
  const JsonObject object(json, "config.json");
  EXPECT_EQ(to_string(object.object("text").error()), "config.json: text: expected an object");
  EXPECT_EQ(to_string(object.object("absent").error()), "config.json: absent: expected an object");
  const auto inner = object.object("inner");
  ASSERT_TRUE(inner);
  EXPECT_EQ(to_string(inner->boolean("deep", true).error()), "config.json: inner: deep: expected true or false");
  EXPECT_EQ(to_string(inner->number("deep", 1).error()), "config.json: inner: deep: not a number");
  EXPECT_EQ(to_string(inner->string("list", "").error()), "config.json: inner: list: expected a text");
  EXPECT_EQ(to_string(inner->strings("list").error()), "config.json: inner: list: expected a list of texts");
  EXPECT_EQ(to_string(inner->strings("deep").error()), "config.json: inner: deep: expected a list of texts");
}

TEST(JsonObject, WhatIsNoObjectReadsAsEmpty) {
  const Json json = Json::array({1});
  EXPECT_FALSE(JsonObject(json, "c").has("0"));
}

}  // namespace
}  // namespace ullage
