// The command line in process, its output kept.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"

namespace ullage::testing {

struct Captured {
  int status = 0;
  std::string out;
  std::string err;
};

// "train gpt2 --json" as its words; a word may not hold a blank.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

// The real ones, but no test asks the Hub.
inline cli::Files files() {
  cli::Files out = cli::real_files();
  out.repository = [](const std::string& id) {
    hub::Settings offline;
    offline.offline = true;
    return hub::open_repository(id, offline);
  };
  return out;
}

inline Captured run(const std::vector<std::string>& words, const cli::Surroundings& surroundings = {},
                    const cli::Files& seen = files()) {
  Captured out;
  const cli::Streams streams{[&](std::string_view text) -> Expected<void> {
                               out.out += text;
                               return {};
                             },
                             [&](std::string_view text) { out.err += text; }, surroundings};
  out.status = cli::run(words, streams, seen);
  return out;
}

inline Captured run(const std::string& line) { return run(words_of(line)); }

}  // namespace ullage::testing
