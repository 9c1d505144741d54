// tests/data/launch-commands.jsonl: launch commands as people post them, with what has to be read of each.
//
// What is expected was written down from the named thread or page, or computed by hand ("why"), before any of the
// commands was read by the program. Paths and names that say who posted them are replaced; models that the catalogue
// lacks are replaced by one of the same kind, and the row says so.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace ullage::testing {

struct CommandRow {
  Json row;
  std::string command() const { return row.at("command"); }
  std::vector<std::string> strings(const char* key) const { return row.at(key).get<std::vector<std::string>>(); }
};

// All rows, in the file's order; a failure of the test where it cannot be read.
std::vector<CommandRow> command_rows();

// The text of a file that the row's command names.
Expected<std::string> file_of(const CommandRow& row, const std::string& path);

}  // namespace ullage::testing
