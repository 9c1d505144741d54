// What the publication of a case says of the program that ran, where the case's arguments do not: rows of
// data/stated_setups.jsonl.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "corpus/case.h"

namespace ullage::corpus {

// A unit that a publication leaves open: figures of that quantity may mean up to `factor` times the bytes that the case
// took them for.
struct OpenUnit {
  std::string key;  // "peak.process_bytes"; empty: no unit is open
  double factor = 1;
};

struct StatedSetup {
  std::string label;              // of the cases it holds for; empty: any
  std::string source;             // their publication's address; empty: any
  std::string needs;              // only of cases that name this option; empty: all
  std::vector<std::string> args;  // may be empty where a unit is open
  OpenUnit unit;
  bool inferred = false;  // concluded from what such cases are; else the publication says so
  std::string says;       // what says so, and where
};

// In the file's order. Fails on the first malformed row, with its number.
Expected<std::vector<StatedSetup>> parse_stated_setups(std::string_view lines);

// The built-in rows.
std::vector<StatedSetup> stated_setups();

// Which rows hold for the case and name an option that its arguments do not, or a unit of what it measured; `args` grow
// by those options. Of two rows that name an option the first counts.
std::vector<std::size_t> add_stated(const Case& entry, std::span<const StatedSetup> setups,
                                    std::vector<std::string>& args);

}  // namespace ullage::corpus
