// Flags that become options of `ullage serve` by a rule of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "base/json.h"
#include "launch/given_flags.h"
#include "launch/launch.h"

namespace ullage::launch {

// What several flags say together, gathered until all are read.
struct Gathered {
  Json speculative;                                  // of vLLM: the flags before there was one configuration
  std::vector<std::pair<std::string, Json>> dotted;  // --speculative-config.method and its like, by flag
};

// A flag of Role::translated. Fails on JSON that cannot be read.
Expected<void> translate(const GivenFlag& given, Gathered& gathered, Launch& launch);

// A flag with a path into its JSON.
void gather_dotted(const GivenFlag& given, Gathered& gathered);

// What was gathered, as options.
Expected<void> translate_gathered(const Gathered& gathered, Launch& launch);

}  // namespace ullage::launch
