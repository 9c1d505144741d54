// An engine's own arguments taken apart: each flag with its value, before anything is made of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/json.h"
#include "launch/flags.h"
#include "launch/launch.h"

namespace ullage::launch {

struct GivenFlag {
  FoundFlag flag;
  std::string path;   // "method" of --speculative-config.method; empty: the flag itself
  std::string value;  // of a list joined by commas; empty: a switch
  std::string from;   // the file it stands in; empty: the command
};

struct GivenFlags {
  std::vector<GivenFlag> flags;
  std::vector<std::string> positionals;
  std::vector<UnknownFlag> unknown;
};

// JSON on one line; bytes that are no UTF-8, which a command line may hold, are replaced.
std::string dumped(const Json& json);

// Fails where a flag lacks its value.
Expected<GivenFlags> take_apart(Engine engine, std::span<const std::string> arguments);

// The flags that a configuration file gives in YAML; those that the command gives, too, are left to it. TensorRT-LLM's
// files have their own, nested keys and come before the command.
Expected<void> add_file(Engine engine, std::string_view text, const std::string& path, GivenFlags& given);

}  // namespace ullage::launch
