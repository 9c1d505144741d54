// What public reports about serving say of a set-up that they state: tests/data/serving-reports.jsonl, whose expected
// answers were written down from the reports before the program was asked. "open" says why an answer is not right yet.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

// "kv.tokens" into the document.
const Json* at(const Json& document, std::string_view path) {
  const Json* here = &document;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    const auto found = here->find(key);
    if (found == here->end()) return nullptr;
    here = &*found;
  }
  return here;
}

// What differs from the report; empty: nothing.
std::string difference(const Json& row) {
  std::vector<std::string> words = row["args"].get<std::vector<std::string>>();
  words.emplace_back("--json");
  const testing::Captured captured = testing::run(words);
  const auto said = parse_json(captured.out, "answer");
  if (!said) return captured.err;
  std::string out;
  for (const auto& [path, expected] : row["expect"].items()) {
    const Json* value = at(*said, path);
    const bool right = value != nullptr && !value->is_null() &&
                       (expected.is_boolean() ? *value == expected
                                              : std::abs(value->get<double>() - expected[0].get<double>()) <=
                                                    expected[1].get<double>() * expected[0].get<double>());
    if (!right)
      out += path + ": " + (value == nullptr ? "null" : value->dump()) + ", expected " + expected.dump() + "; ";
  }
  return out;
}

TEST(ServingReports, AreAnsweredRightlyButForThoseThatSayWhyNot) {
  std::ifstream in(ULLAGE_TEST_DATA "/serving-reports.jsonl");
  int right = 0;
  int all = 0;
  for (std::string line; std::getline(in, line);) {
    const auto row = parse_json(line, "serving-reports.jsonl");
    ASSERT_TRUE(row);
    ++all;
    const std::string differs = difference(*row);
    right += differs.empty() ? 1 : 0;
    if (!differs.empty()) std::cout << (*row)["source"].get<std::string>() << ": " << differs << "\n";
    EXPECT_EQ(differs.empty(), (*row)["open"].is_null()) << line << "\n" << differs;
  }
  std::cout << right << " of " << all << " reports are answered rightly\n";
  EXPECT_GE(all, 20);
}

}  // namespace
}  // namespace ullage
