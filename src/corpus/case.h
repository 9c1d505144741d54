// Measured cases: what somebody ran, and what was measured. One JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace ullage::corpus {

// Bytes, tokens or seconds, as the key says; 1 and 0 for a yes and a no. A double holds bytes exactly up to 2^53.
struct Quantity {
  std::string key;  // a path into the prediction's JSON
  double value = 0;
};

struct Case {
  std::string where;   // "FILE: line N"
  std::string folder;  // of the file: models given as files lie in it
  std::string id;
  std::string source;
  std::string engine;  // the label under which tables group
  std::string method;  // log, table, lab or formula
  std::string confidence;
  std::string date;
  std::vector<std::string> args;  // of one `ullage` call
  std::vector<Quantity> expect;
  std::vector<Quantity> precision;  // half a unit of the last digit that was printed
};

// Cases of a corpus are text written by hand or by a script.
inline constexpr std::int64_t kMaxCorpusBytes = 64 * 1024 * 1024;

// Fails on the first malformed line, with its number; an empty line is none.
Expected<std::vector<Case>> read_cases(const std::string& path);

// The words that stand where the model's name does; empty without one.
std::string_view model_of(const Case& entry);

// What follows `--name` among the arguments, "true" for an option without a value; nothing without the option.
// '_' and '-' in names are the same.
std::optional<std::string> option_of(const Case& entry, std::string_view name);

}  // namespace ullage::corpus
