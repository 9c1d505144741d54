// The options that every command shares: which form the answer takes, in which language, how it looks.
#pragma once

#include "cli/arguments.h"
#include "cli/streams.h"
#include "report/text_style.h"

namespace ullage::cli {

// --lang, else what LANG says.
report::Language language_of(const Arguments& arguments, const Surroundings& surroundings);

// Fails where --quiet and --verbose contradict.
Expected<report::TextStyle> text_style(const Arguments& arguments, const Surroundings& surroundings);

inline bool wants_json(const Arguments& arguments) { return arguments.has("--json"); }

}  // namespace ullage::cli
