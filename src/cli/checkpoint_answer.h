// `ullage inspect MODEL --checkpoint`: what its files store, or what a checkpoint of its configuration would.
#pragma once

#include <string>

#include "cli/commands.h"
#include "report/text_style.h"

namespace ullage::cli {

Expected<std::string> checkpoint_answer(const Invocation& call, const report::TextStyle& style);

}  // namespace ullage::cli
