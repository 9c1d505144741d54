// Every operator row that PyTorch left behind, run through our operators: allocations in order, outputs, what is kept
// for backward, backward's allocations, and the gradients that arrive.
#include <gtest/gtest.h>

#include <algorithm>
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
  std::size_t reordered = 0;                   // equal but for the order of releases
  std::map<std::string, std::size_t> skipped;  // by reason
};

bool only_release_order(const std::vector<std::string>& found) {
  return !found.empty() && std::all_of(found.begin(), found.end(), [](const std::string& difference) {
    return difference.starts_with(kReleaseOrder);
  });
}

// The CPU's composed attention with dropout: in which order its eight locals go. Casts that leave autocast's cache
// together: it is a hash table keyed by addresses.
bool may_reorder(const OperatorRow& row) {
  return (row.op() == "attention" && row.json.at("device") == "cpu") || row.json.contains("leaving_region");
}

void print(const Tally& tally) {
  std::cout << tally.run << " of " << tally.rows << " operator rows were run; not run:\n";
  std::cout << "  (" << tally.reordered << " release in another order between two allocations)\n";
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
    if (only_release_order(found) && may_reorder(row)) {
      ++tally.reordered;
      continue;
    }
    std::string text;
    for (const std::string& difference : found) text += "\n  " + difference;
    EXPECT_TRUE(found.empty()) << row.title() << text;
  }
  print(tally);
  EXPECT_EQ(tally.rows, 6307U);
  EXPECT_EQ(tally.run, 5225U);
  EXPECT_LE(tally.reordered, 49U);
}

}  // namespace
}  // namespace ullage::testing
