// The program: hands arguments, streams and surroundings to cli::run.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "cli/run.h"

namespace {

using ullage::cli::Streams;
using ullage::cli::Surroundings;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// In the order in which POSIX looks at them.
std::string locale_name() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    if (std::string value = variable(name); !value.empty()) return value;
  }
  return {};
}

std::string encoding_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = variable(name); !value.empty()) return value;
  }
  return {};
}

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Surroundings surroundings() {
  Surroundings out;
  out.language = locale_name();
  out.terminal = isatty(STDOUT_FILENO) != 0;
  const std::string encoding = encoding_locale();
  // A locale named "C" or none at all says nothing about the terminal behind a pipe; only a terminal is asked.
  out.unicode =
      !out.terminal || encoding.find("UTF-8") != std::string::npos || encoding.find("utf8") != std::string::npos;
  out.no_color = !variable("NO_COLOR").empty();
  if (out.terminal) out.columns = terminal_columns();
  return out;
}

ullage::Expected<void> write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  return ullage::fail(ullage::ErrorCode::io, "standard output", std::string("cannot write: ") + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const Streams streams{write_out, [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); },
                        surroundings()};
  try {
    return ullage::cli::run(args, streams, ullage::cli::real_files());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "ullage: internal fault: %s; please report it with the command you ran\n", fault.what());
    return ullage::cli::kOurFault;
  }
}
