// How long a step would take at a card's published rates; only ratios of such times are shown.
#pragma once

#include <optional>

#include "report/train_report.h"

namespace ullage::report {

// Nothing without a card, or where the catalogue lacks one of its rates.
std::optional<double> roofline_seconds_of(const TrainQuestion& question);

}  // namespace ullage::report
