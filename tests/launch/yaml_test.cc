// Configuration files: what is expected is what PyYAML's safe_load of the same text prints as JSON.
#include "launch/yaml.h"

#include <gtest/gtest.h>

namespace ullage::launch {
namespace {

std::string dumped(std::string_view text) {
  const auto json = parse_yaml(text, "f.yaml");
  return json ? json->dump() : to_string(json.error());
}

TEST(Yaml, WordsAreWhatPyYamlMakesOfThem) {
  EXPECT_EQ(dumped("a: yes\nb: Off\nc: 'yes'\nd: ~\ne:\nf: null\n"),
            R"({"a":true,"b":false,"c":"yes","d":null,"e":null,"f":null})");
  EXPECT_EQ(dumped("a: 010\nb: 0x10\nc: 1_000\nd: -7\ne: 0b11\nf: 09\n"),
            R"({"a":8,"b":16,"c":1000,"d":-7,"e":3,"f":"09"})");
  EXPECT_EQ(dumped("a: 0.9\nb: 1e3\nc: 1.5e+3\nd: .5\ne: 1.2.3\nf: v0.9\n"),
            R"({"a":0.9,"b":"1e3","c":1500.0,"d":0.5,"e":"1.2.3","f":"v0.9"})");
}

TEST(Yaml, ListsMappingsAndTexts) {
  EXPECT_EQ(dumped("a: [1, 2, x]\nb:\n  - 1\n  - {c: d}\ne: {\"f\": 1}\n"),
            R"({"a":[1,2,"x"],"b":[1,{"c":"d"}],"e":{"f":1}})");
  EXPECT_EQ(dumped("# only this\n--- \na: \"b # c\"  # d\ne: f g\n...\n"), R"({"a":"b # c","e":"f g"})");
  EXPECT_EQ(dumped("a: >\n  b\n  c\nd: |\n  e\n  f\n"), "{\"a\":\"b c\\n\",\"d\":\"e\\nf\\n\"}");
  EXPECT_EQ(dumped("a: 1\na: 2\n"), R"({"a":2})");
  EXPECT_EQ(dumped(""), "null");
  EXPECT_EQ(dumped("word"), R"("word")");
}

TEST(Yaml, WhatIsRefusedNamesItsLine) {
  EXPECT_EQ(dumped("a: 1\nb: [1, 2\nc: 3\n").substr(0, 12), "f.yaml: line");
  EXPECT_EQ(dumped("a: &x 1\nb: *x\n"), "f.yaml: line 2: aliases are not read; write the value out");
  EXPECT_EQ(dumped("a:\n  <<: {b: 1}\n"), "f.yaml: line 2: merge keys are not read; write the values out");
  EXPECT_EQ(dumped("[1, 2]: 3\n"), "f.yaml: line 1: expected a word as a key");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "[";
  EXPECT_NE(dumped(deep).find("nested deeper"), std::string::npos);
  std::string many = "a: [";
  for (int i = 0; i < kMostYamlValues; ++i) many += "1,";
  EXPECT_NE(dumped(many + "]").find("more than 4096 values"), std::string::npos);
  EXPECT_NE(dumped(std::string(kMostYamlBytes + 1, 'a')).find("longer than"), std::string::npos);
}

}  // namespace
}  // namespace ullage::launch
