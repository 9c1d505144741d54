// The flags of engines' launch commands: which decide memory, and how each is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::launch {

enum class Engine : std::uint8_t { vllm, sglang, tensorrt_llm };

// As `ullage serve --engine` names it, and as people do.
std::string_view engine_word(Engine engine);
std::string_view engine_title(Engine engine);

enum class Takes : std::uint8_t {
  nothing,  // a switch; --no-… turns it off
  value,
  values,  // one or more, up to the next flag
  maybe,   // a value or nothing
};

enum class Role : std::uint8_t {
  option,      // is an option of `ullage serve`
  translated,  // becomes one, by a rule of its own
  ignored,     // moves no memory of a GPU that is counted
  uncounted,   // moves memory, and nothing here counts it
};

struct Flag {
  std::string_view names;  // separated by blanks; the first is the one that the engine documents
  Takes takes = Takes::value;
  Role role = Role::ignored;
  std::string_view option = {};  // of `ullage serve`; Role::option only

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};

// A flag as it was found in the tables of an engine.
struct FoundFlag {
  std::string name;  // the documented one
  Takes takes = Takes::value;
  Role role = Role::ignored;
  std::string_view option = {};
  bool off = false;  // written as --no-…
};

// `written` without a value; underscores are dashes and dashes underscores. Of a beginning that only one flag has
// Python's argparse takes that flag, which vLLM and SGLang use.
std::optional<FoundFlag> find_flag(Engine engine, std::string_view written);

// The flag that was meant, where a slip of the pen tells it; empty: none is near.
std::string nearest_flag(Engine engine, std::string_view written);

// The flags of one role, documented names.
std::vector<std::string_view> flags_of(Engine engine, Role role);

// What the tables hold. Flags that move no memory are kept as words: there are hundreds.
struct FlagTable {
  std::span<const Flag> flags;
  std::string_view ignored_values;    // each takes one value
  std::string_view ignored_switches;  // each takes none
  std::string_view ignored_lists;     // each takes one or more
  std::string_view uncounted_values;
  std::string_view uncounted_switches;
  bool abbreviates = false;
};

const FlagTable& vllm_flags();
const FlagTable& sglang_flags();
const FlagTable& tensorrt_llm_flags();

}  // namespace ullage::launch
