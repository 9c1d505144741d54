// A prediction as text for a terminal.
#pragma once

#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

// quiet: one line; normal: what one needs at a glance; verbose: rules, every setting, more tensors and all layers.
std::string prediction_text(const Prediction& prediction, const TextStyle& style);

// The rule, what was put in, the result and the source, of one component or (empty) of all.
std::string why_text(const Prediction& prediction, std::string_view component, const TextStyle& style);

}  // namespace ullage::report
