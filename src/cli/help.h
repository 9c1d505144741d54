// --help, from the option table and the message catalogue.
#pragma once

#include <string>

#include "cli/option_table.h"

namespace ullage::cli {

std::string general_help(report::Language language);
std::string command_help(const CommandSpec& command, report::Language language);

}  // namespace ullage::cli
