// Which commands there are and which options each takes, as data: the parser, --help and error texts read it.
#pragma once

#include <span>
#include <string_view>

#include "report/messages.h"

namespace ullage::cli {

struct OptionSpec {
  std::string_view name;   // "--seq-len"
  std::string_view value;  // how its value is called in --help; empty: a flag; in brackets: may be left out
  report::Text help{};
  std::string_view choices = {};  // "fp32|bf16": the values that work; empty: any
  std::string_view later = {};    // values that the contract names and nothing has built yet
  bool repeatable = false;

  bool value_may_lack() const { return value.starts_with('['); }
};

struct CommandSpec {
  std::string_view name;
  std::string_view positional;  // "MODEL", "[TEXT]"; empty: none
  bool many_positionals = false;
  report::Text help{};
  std::span<const OptionSpec> options;
  std::string_view later;      // options that nothing has built yet, separated by blanks
  bool takes_command = false;  // behind "--"; its words are the positionals, whatever they look like
};

// Those of every command.
std::span<const OptionSpec> common_options();
inline constexpr std::string_view kLaterCommonOptions = "--html";

std::span<const CommandSpec> commands();
const CommandSpec* find_command(std::string_view name);
// Commands that nothing has built yet.
inline constexpr std::string_view kLaterCommands = "plan explain scrub watch measure web";

// Calls visit(word) for the words of a list separated by `separator`.
template <class Visit>
void for_each_word(std::string_view list, char separator, Visit visit) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator);
    if (end != 0) visit(list.substr(0, end));
    if (end == std::string_view::npos) return;
    list.remove_prefix(end + 1);
  }
}

bool has_word(std::string_view list, char separator, std::string_view word);

}  // namespace ullage::cli
