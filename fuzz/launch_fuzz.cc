// Bytes as a launch command, and behind a NUL the text of whatever file it names.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch.h"

namespace {

using namespace ullage;
using namespace ullage::launch;

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are one line that a terminal can show.
void check_error(const Error& error) {
  require(!error.message.empty());
  require(to_string(error).find('\n') == std::string::npos);
  require(to_string(error).size() < 1500);
}

// What a shell is given as one line, it reads back as the same words.
void check_words(std::string_view text) {
  const auto commands = split_shell(text);
  if (!commands) return check_error(commands.error());
  for (const ShellCommand& command : *commands) {
    if (command.words.empty() || is_assignment(command.words.front())) continue;
    const std::string line = shell_line(command.words);
    if (line.size() > kMostShellBytes || command.words.front() == "export") continue;
    const auto again = split_shell(line);
    require(again.has_value() && again->size() == 1);
    const bool prompt = command.words.front() == "$" || command.words.front() == "%" || command.words.front() == ">";
    require(prompt || again->front().words == command.words);
  }
}

void check_launch(const Launch& launch) {
  require(serve_words(launch).size() >= 4);
  const std::pair<std::string, std::string> changes[] = {{"--max-model-len", "1024"}, {"--enforce-eager", ""}};
  require(changed_command(launch, changes).find("1024") != std::string::npos);
  changed_command(launch, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  const std::string_view text = all.substr(0, end);
  const std::string_view file = end == std::string_view::npos ? std::string_view() : all.substr(end + 1);
  check_words(text);
  const std::vector<std::string> words{std::string(text)};
  const auto launch = read_launch(words, [&](const std::string&) { return Expected<std::string>(file); });
  if (!launch) check_error(launch.error());
  else check_launch(*launch);
  return 0;
}
