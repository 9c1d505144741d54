#include "cli/versions.h"

#include <fmt/core.h>

namespace ullage::cli {

Expected<void> check_version(const Arguments& arguments, std::string_view option, std::string_view known) {
  const std::string given = arguments.text(option, known);
  if (given == known || given.starts_with(std::string(known) + ".")) return {};
  return fail(ErrorCode::unsupported, std::string(option),
              fmt::format("{} is not in this version; known is {}", given.substr(0, 40), known));
}

}  // namespace ullage::cli
