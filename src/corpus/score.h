// Predicted against measured.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "corpus/select.h"
#include "corpus/stated_setup.h"

namespace ullage::corpus {

// Answers the arguments of one call with the JSON that the command prints, as of `date` where they name no version. An
// error with ErrorCode::unsupported means that this version cannot know; any other one is a failure.
using Predict = std::function<Expected<Json>(const std::vector<std::string>& args, const std::string& date)>;

// Between which values the prediction holds the quantity possible.
struct Range {
  double low = 0;
  double high = 0;
};

struct Score {
  std::string id;
  std::string engine;
  std::string key;
  bool evidence = true;  // false: the figure was itself computed by a formula
  double predicted = 0;
  double measured = 0;
  double error = 0;  // absolute and relative; 0 within the case's precision, 1 where nothing was to be there
  std::optional<Range> range = std::nullopt;  // where the prediction gives one
  bool inside = false;                        // the measured value is within it, or as near as the case's precision
  double perhaps = 0;  // what was measured, if a unit that its publication leaves open is larger; else `measured`
};

// Scores of one engine and quantity.
struct Summary {
  std::string engine;
  std::string key;
  bool evidence = true;
  std::size_t count = 0;
  std::size_t equal = 0;  // without any error
  double median = 0;
  double percentile_90 = 0;  // the smallest error that nine in ten do not exceed
  double largest = 0;
  std::size_t ranged = 0;   // with a range
  std::size_t inside = 0;   // of those within it
  double median_width = 0;  // of the ranges, relative to what was measured
};

// A case that gave no score.
struct Unanswered {
  std::string id;
  std::string where;
  std::string reason;
};

// Options that cases do not name and were asked with, and units that are open.
struct Taken {
  StatedSetup setup;
  std::size_t cases = 0;    // that were asked with them and compared
  std::size_t only_so = 0;  // ranges that are right only because a unit is open
};

struct Validation {
  std::size_t read = 0;             // cases in the files
  std::size_t selected = 0;         // of them meant
  std::size_t scored = 0;           // of those with at least one score
  std::size_t equal = 0;            // of those without any error in any quantity
  std::vector<Score> scores;        // in the order of the cases
  std::vector<Unanswered> skipped;  // use what is not in this version
  std::vector<Unanswered> failed;   // should have been answered
  std::vector<Unanswered> missing;  // a quantity that the prediction does not give, `reason` is its key
  std::vector<Summary> summaries;   // by engine, then quantity, in order of appearance
  std::vector<Taken> taken;         // in the order of the setups
};

// |predicted - measured| / |measured|, 0 within `precision`.
double error_of(double predicted, double measured, double precision);

// Runs the selected cases. Only quantities whose key begins with `key_prefix` count. Scores are summed up by what the
// keys `by` are in each case (as in Where, or `confidence`), one behind the other; without any by its label of an
// engine. A case is asked with what `setups` say of it, or as it is written where that cannot be answered. Where a unit
// is open, a range is right if it has any of the values that may be meant; errors are those of the value that is
// written.
Validation validate(const std::vector<Case>& cases, const Selection& selection, const std::string& key_prefix,
                    const Predict& predict, const std::vector<std::string>& by = {},
                    std::span<const StatedSetup> setups = {});

// By decreasing error, at most `rows`.
std::vector<Score> worst(std::vector<Score> scores, std::size_t rows);

}  // namespace ullage::corpus
