// A prediction as the JSON of docs/schema/prediction.json.
#pragma once

#include <string>

#include "base/json.h"
#include "report/prediction.h"

namespace ullage::report {

// One document with a newline behind it; texts are English.
Json prediction_document(const Prediction& prediction);
std::string prediction_json(const Prediction& prediction);

}  // namespace ullage::report
