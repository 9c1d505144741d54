// Reads a launch command, and answers for it, as often as it is told to.
#pragma once

#include <cstdint>

namespace ullage {

// Only what the command says.
int drive_launches(std::int64_t times);

// What `ullage check` does for a command that starts, without writing it down.
int drive_checks(std::int64_t times);

}  // namespace ullage
