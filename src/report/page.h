// The report as one page: a file that needs nothing beside it and no network, in English and Chinese at once.
#pragma once

#include <string>

#include "memory/timeline.h"
#include "report/prediction.h"

namespace ullage::report {

// `timeline` is the one that the prediction was made from; what lies before the step is shown, too. The page begins in
// the language and unit of `wording`, and its reader can change the language.
std::string prediction_page(const Prediction& prediction, const memory::Timeline& timeline, const Wording& wording);

}  // namespace ullage::report
