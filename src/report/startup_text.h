// The text about an engine that shares a card out when it starts.
#pragma once

#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

// Its error where it refuses, and how full the card is.
void write_startup(TextPage& page, const Prediction& prediction);

// What its log says of the cache and what that means; GPUs that differ.
void write_capacity(TextPage& page, const Prediction& prediction);

}  // namespace ullage::report
