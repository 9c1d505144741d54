// One question to two releases of an engine: what differs.
#pragma once

#include <array>
#include <string>

#include "report/prediction.h"
#include "report/text_style.h"

namespace ullage::report {

using VersionPair = std::array<Prediction, 2>;  // in the order asked

// Options whose defaults differ, then what a GPU holds, tokens and verdicts side by side.
std::string versions_text(const VersionPair& pair, const TextStyle& style);

// ullage.versions/1: the same, with both documents.
std::string versions_json(const VersionPair& pair);

}  // namespace ullage::report
