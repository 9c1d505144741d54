// The versions whose behaviour was recorded; others may differ.
#pragma once

#include <string_view>

#include "cli/arguments.h"

namespace ullage::cli {

inline constexpr std::string_view kTorchVersion = "2.14";
inline constexpr std::string_view kTransformersVersion = "5.12";

// `option` left out, or naming the known version or a release of it.
Expected<void> check_version(const Arguments& arguments, std::string_view option, std::string_view known);

}  // namespace ullage::cli
