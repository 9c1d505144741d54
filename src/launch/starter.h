// What stands in front of an engine's own arguments: shells, containers, launchers, Python.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "launch/flags.h"
#include "launch/shell_words.h"

namespace ullage::launch {

struct Started {
  Engine engine = Engine::vllm;
  std::string version;               // of a container's tag
  std::vector<std::string> around;   // in words, outermost first
  Variables environment;             // that the engine sees
  std::optional<std::int64_t> gpus;  // that a container is given
  std::string gpus_by;
  std::vector<std::string> before;
  std::vector<std::string> arguments;
};

// Fails with unsupported where the command starts no engine that is known, naming what it starts.
Expected<Started> find_engine(std::span<const std::string> words);

}  // namespace ullage::launch
