// Reading small files whole and writing results so that a full disk loses nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage {

// The whole file. Refuses directories, devices and anything larger than `most_bytes` without reading it.
Expected<std::string> read_file(const std::string& path, std::int64_t most_bytes);

// Writes beside the target and renames, so that a failure leaves the old file as it was and no half of a new one.
Expected<void> write_file(const std::string& path, std::string_view content);

}  // namespace ullage
