// Every operator row that PyTorch left behind, run through our operators: allocations in order, outputs, what is kept
// for backward, backward's allocations, and the gradients that arrive.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "operator_row.h"

namespace ullage::testing {
namespace {

bool has_several_outputs(const OperatorRow& row) { return row.json.at("outputs").size() > 1; }

std::string why_not(const OperatorRow& row, const Chosen& chosen) {
  if (chosen.run == nullptr) return chosen.why_not;
  if (row.mode() == "recompute" && has_several_outputs(row)) return "a checkpoint of ours returns one tensor";
  return {};
}

struct Tally {
  std::size_t rows = 0;
  std::size_t run = 0;
  std::map<std::string, std::size_t> skipped;  // by reason
};

void print(const Tally& tally) {
  std::cout << tally.run << " of " << tally.rows << " operator rows were run; not run:\n";
  for (const auto& [reason, count] : tally.skipped) std::cout << "  " << count << "  " << reason << "\n";
}

TEST(OperatorRows, EqualPyTorchs) {
  Tally tally;
  for (const OperatorRow& row : read_operator_rows()) {
    ++tally.rows;
    const Chosen chosen = choose_operator(row);
    if (const std::string reason = why_not(row, chosen); !reason.empty()) {
      ++tally.skipped[reason];
      continue;
    }
    ++tally.run;
    const std::vector<std::string> found = differences(row, chosen.run);
    std::string text;
    for (const std::string& difference : found) text += "\n  " + difference;
    EXPECT_TRUE(found.empty()) << row.title() << text;
  }
  print(tally);
  EXPECT_EQ(tally.rows, 6187U);
  EXPECT_EQ(tally.run, 0U);
}

}  // namespace
}  // namespace ullage::testing
