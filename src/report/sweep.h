// The same question for one value of an option after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

struct SweepRow {
  std::string value;
  std::string found;  // of the option that was searched
  std::optional<Prediction> prediction;
  std::string error;  // why there is none
};

struct SweepTable {
  std::string option;    // "--micro-batch"
  std::string searched;  // an option that was `max` and found for each value; empty: none
  std::vector<SweepRow> rows;
};

// A row for each value with a bar, and the card's limit where there is one.
std::string sweep_text(const SweepTable& table, const TextStyle& style);

// ullage.sweep/1: the whole document of each prediction.
std::string sweep_json(const SweepTable& table);

}  // namespace ullage::report
