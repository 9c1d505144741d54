// A launch command of a serving engine, read into the options of `ullage serve`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "launch/flags.h"
#include "launch/shell_words.h"

namespace ullage::launch {

struct ReadFlag {
  std::string name;   // as the engine documents it: "--max-model-len"
  std::string value;  // empty: a switch
  bool off = false;   // a switch turned off: --no-…
  std::string from;   // the file it stands in; empty: the command
};

struct UnknownFlag {
  std::string written;
  std::string value;
  std::string taken_for;  // the flag that a slip of the pen tells; empty: left out
};

struct ServeOption {
  std::string name;   // of `ullage serve`
  std::string value;  // empty: a switch
};

struct Launch {
  Engine engine = Engine::vllm;
  std::string version;  // of the engine, as a container's tag says; empty: not said
  std::string model;
  std::vector<ServeOption> options;      // each name once, but --set and --env
  std::vector<ReadFlag> read;            // what became options
  std::vector<ReadFlag> ignored;         // moves no memory
  std::vector<ReadFlag> uncounted;       // moves memory, and nothing here counts it
  std::vector<UnknownFlag> unknown;      // the engine has no such flag
  std::vector<std::string> ignored_env;  // names of variables that decide nothing here
  std::vector<std::string> around;       // what starts the engine: "docker run vllm/vllm-openai:v0.9.1"
  std::optional<std::int64_t> visible_gpus;
  std::string visible_by;              // what says so: "CUDA_VISIBLE_DEVICES"
  bool several_hosts = false;          // what is visible on one of them is not all there is
  std::vector<std::string> before;     // the words up to the engine's own arguments
  std::vector<std::string> arguments;  // the engine's own
};

// The text of a file that the command names: --config.
using ReadFile = std::function<Expected<std::string>(const std::string& path)>;

// `words` as a shell hands them on; a single one with blanks in it is taken for the text of a script. Fails with
// unsupported where the command starts something else, naming it, and with what is wrong in files and JSON values.
Expected<Launch> read_launch(std::span<const std::string> words, const ReadFile& read_file);

// Sets an option of `ullage serve` in place of an older value.
void set_option(Launch& launch, std::string_view name, std::string value);

// "serve MODEL --engine … …": the same question.
std::vector<std::string> serve_words(const Launch& launch);

// The command with flags given other values (empty: a switch), or, where it lacks them, behind the others; flags that
// the engine does not have are spelled right or left out. One line for a shell.
std::string changed_command(const Launch& launch, std::span<const std::pair<std::string, std::string>> changes);

}  // namespace ullage::launch
