// Asks for the largest micro-batch that fits, as often as it is told to.
#pragma once

#include <cstdint>

namespace ullage {

int drive_search(std::int64_t times);

}  // namespace ullage
