#include "model/tuning.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"

namespace ullage::model {
namespace {

// Rows are found by a search that asks for order; each must be.
void expect_found(const char* file, Tuner tuner) {
  std::ifstream in(std::string(ULLAGE_SOURCE_DIR) + "/data/" + file);
  ASSERT_TRUE(in);
  std::string line;
  int rows = 0;
  while (std::getline(in, line)) {
    const auto row = parse_json(line, file);
    ASSERT_TRUE(row);
    const auto targets = default_targets(row->at("model_type").get<std::string>(), tuner);
    EXPECT_EQ(targets, row->at("targets").get<std::vector<std::string>>()) << line;
    ++rows;
  }
  EXPECT_GT(rows, 20);
}

TEST(Tuning, EveryRowOfTargetsIsFound) {
  expect_found("lora_targets.jsonl", Tuner::lora);
  expect_found("ia3_targets.jsonl", Tuner::ia3);
}

}  // namespace
}  // namespace ullage::model
