// A command as it is typed or pasted: words, quotes, variables and line continuations of a POSIX shell.
//
// Source: POSIX.1-2017, Shell Command Language, 2.2 (quoting), 2.3 (tokens), 2.6 (expansions of parameters).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"

namespace ullage::launch {

using Variables = std::vector<std::pair<std::string, std::string>>;

// What is typed is a screen at most; anything beyond is refused.
inline constexpr std::size_t kMostShellBytes = 64 * 1024;

// One simple command with the variables that hold for it, those exported before it included.
struct ShellCommand {
  Variables environment;
  std::vector<std::string> words;
};

// "NAME=value", as it stands in front of a command or behind `env`, `export` and -e.
bool is_assignment(std::string_view word);
void assign(Variables& variables, std::string_view assignment);
const std::string* find_variable(const Variables& variables, std::string_view name);

// The simple commands of a text in their order, quotes taken off, variables that the text itself sets put in. Pipes,
// lists and background jobs part commands; redirections and comments are left out, and so is a prompt ("$ ") in front.
// What only a running shell could know, as $HOME or $(…), stays as it is written.
// Fails on a quote that does not end (malformed) and on texts that are too large or grow so (too_large).
Expected<std::vector<ShellCommand>> split_shell(std::string_view text);

// The words as one line that a shell reads back as them.
std::string shell_line(std::span<const std::string> words);

}  // namespace ullage::launch
