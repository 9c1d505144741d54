// Predicted against measured, as a text and as the JSON of docs/schema/validate.json.
#pragma once

#include <optional>
#include <string>

#include "corpus/score.h"
#include "report/text_style.h"

namespace ullage::report {

// The `rows` worst scores, then count, median and 90th percentile by engine and quantity, then what could not be
// compared and why, last how many are equal to the byte and the largest error.
std::string validation_text(const corpus::Validation& validation, std::size_t rows, const TextStyle& style);

// All scores in the order of the cases, or the `rows` worst. One document with a newline behind it.
std::string validation_json(const corpus::Validation& validation, std::optional<std::size_t> rows);

}  // namespace ullage::report
