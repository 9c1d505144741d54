// The textbook's lines as part of another document.
#pragma once

#include "base/json.h"
#include "report/textbook.h"

namespace ullage::report {

Json textbook_lines_json(const std::vector<TextbookLine>& lines);

}  // namespace ullage::report
