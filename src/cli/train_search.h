// Sizes to be searched and options to be swept: a training step predicted many times.
#pragma once

#include <functional>

#include "cli/arguments.h"
#include "report/prediction.h"
#include "report/sweep.h"

namespace ullage::cli {

using PredictStep = std::function<Expected<report::Prediction>(const Arguments& arguments)>;

// The option whose value is the word `max`, empty where there is none. Fails where there are several, and where there
// is no card to fit into.
Expected<std::string> searched_option(const Arguments& arguments);

// The arguments with the largest value that fits in place of `max`. Fails where not even 1 fits.
struct Found {
  Arguments arguments;
  report::Message assumption;  // what was found, and that the next one does not fit
};
Expected<Found> search_largest(const Arguments& arguments, const std::string& option, const PredictStep& predict);

// One prediction for each value of --sweep; where another option is `max`, that is searched for each of them. A value
// that cannot be run is a row with the reason; if none can, that is the error, and so is a value that the option cannot
// have.
// `quickly` is for the sizes that a search only compares.
Expected<report::SweepTable> run_sweep(const Arguments& arguments, const PredictStep& predict,
                                       const PredictStep& quickly);

}  // namespace ullage::cli
