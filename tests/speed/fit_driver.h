// Asks all models of the catalogue of all of its cards, as often as it is told to.
#pragma once

#include <cstdint>

namespace ullage {

int drive_fits(std::int64_t times);

}  // namespace ullage
