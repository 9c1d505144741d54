#include "base/json_scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace ullage {
namespace {

// The document again, as the scanner saw it; texts, whole numbers, objects and lists.
Json scanned(JsonScanner& scanner) {
  Json out;
  if (scanner.object_is_next()) {
    out = Json::object();
    scanner.enter_object();
    while (scanner.next_member()) {
      const std::string key(scanner.key());
      out[key] = scanned(scanner);
    }
  } else if (scanner.text_is_next()) {
    out = std::string(scanner.text());
  } else {
    out = scanner.whole();
  }
  return out;
}

TEST(JsonScanner, ReadsWhatTheParserReads) {
  for (const std::string text : {
           R"({})",
           R"({"a":1})",
           R"(  {"a" : {"b":"c", "d":0} ,"e":9223372036854775807,
                "f":{}}  )",
           R"({"a\"\\\/\b\f\n\r\tz":"A\u00e9\u20AC\ud83d\ude00","":""})",
           R"({"a long name of more than eight bytes":"x","12345678":"\\","1234567":"é€"})",
       }) {
    JsonScanner scanner(text);
    const Json seen = scanned(scanner);
    scanner.finish();
    EXPECT_FALSE(scanner.failed()) << text << " at " << scanner.at();
    EXPECT_EQ(seen, Json::parse(text)) << text;
  }
}

TEST(JsonScanner, ReadsListsAndPassesOverTheRest) {
  JsonScanner scanner(R"({"skip":[{"a":[1,-2.5e3,true,null]},"]\"}"],"list":[1, 2,3],"none":[],"end":"x"})");
  std::vector<std::int64_t> list;
  std::string end;
  scanner.enter_object();
  while (scanner.next_member()) {
    if (scanner.key() == "list" || scanner.key() == "none") {
      scanner.enter_array();
      while (scanner.next_element()) list.push_back(scanner.whole());
    } else if (scanner.key() == "end") {
      end = scanner.text();
    } else {
      scanner.skip();
    }
  }
  scanner.finish();
  EXPECT_FALSE(scanner.failed());
  EXPECT_EQ(list, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(end, "x");
}

// Digits are read eight at once: whatever ends them, wherever it stands, the neighbours of the digits among them.
TEST(JsonScanner, ReadsWholeNumbersOfEveryLength) {
  const std::string digits = "9981726354019283746";
  for (std::size_t length = 1; length <= digits.size(); ++length) {
    for (const char end : {',', ':', '/', ' ', 'x', '\x7f', '\x80', '\xba', '\xff', '\0'}) {
      const std::string number = digits.substr(0, length);
      const std::string text = number + end + "1234567890";
      JsonScanner scanner(text);
      if (length == digits.size()) {  // beyond 2^63
        scanner.whole();
        EXPECT_TRUE(scanner.failed());
        continue;
      }
      EXPECT_EQ(scanner.whole(), std::stoll(number)) << text;
      EXPECT_EQ(scanner.at(), length) << text;
      EXPECT_FALSE(scanner.failed()) << text;
    }
  }
}

TEST(JsonScanner, RefusesWhatIsNoJson) {
  for (const std::string text : {
           "",
           " ",
           "{",
           "}",
           "{\"",
           "{\"a",
           "{\"a\"",
           "{\"a\":",
           "{\"a\":1",
           "{\"a\":1,",
           "{\"a\":1,}",
           "{\"a\" 1}",
           "{,}",
           "{\"a\":1}}",
           "{\"a\":1}x",
           "{a:1}",
           "{\"a\":01}",
           "{\"a\":1.5}",
           "{\"a\":-1}",
           "{\"a\":1e3}",
           "{\"a\":9223372036854775808}",
           "{\"a\":\"\\\"}",
           "{\"a\":\"\\",
           "{\"a\":\"\\x\"}",
           "{\"a\":\"\\u12\"}",
           "{\"a\":\"\\ud800\"}",
           "{\"a\":\"\\ud800\\u0041\"}",
           "[1]",
       }) {
    JsonScanner scanner(text);
    scanner.enter_object();
    while (scanner.next_member()) {
      if (scanner.text_is_next()) scanner.text();
      else scanner.whole();
    }
    scanner.finish();
    EXPECT_TRUE(scanner.failed()) << text;
    EXPECT_LE(scanner.at(), text.size());
  }
}

TEST(JsonScanner, DeepNestingIsRefused) {
  const std::string text = std::string(100'000, '[');
  JsonScanner scanner(text);
  scanner.skip();
  EXPECT_TRUE(scanner.failed());
}

}  // namespace
}  // namespace ullage
