// Which engine `ullage serve` asks for, and which options are an engine's own.
#pragma once

#include <string>

#include "cli/arguments.h"

namespace ullage::cli {

// --engine, or what stands in for it.
std::string engine_of(const Arguments& arguments);

// Fails where an option of one engine is given to another.
Expected<void> check_engine_options(const Arguments& arguments);

}  // namespace ullage::cli
