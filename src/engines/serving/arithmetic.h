// What the rules of engines are computed with.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace ullage::engines::serving {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Rules state sizes in GiB and MiB, as the logs they were read off do.
constexpr std::int64_t gib(double value) { return static_cast<std::int64_t>(value * static_cast<double>(kGiB)); }
constexpr std::int64_t mib(double value) { return static_cast<std::int64_t>(value * static_cast<double>(kMiB)); }

}  // namespace ullage::engines::serving
