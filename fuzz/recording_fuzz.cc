// Bytes as a recording of allocations: read, and where that succeeds, replayed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/recording.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are one line that a terminal can show.
void check_error(const Error& error) {
  require(!error.message.empty());
  require(to_string(error).find('\n') == std::string::npos);
  require(to_string(error).size() < 1500);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = evidence::read_recording({reinterpret_cast<const char*>(data), size}, "recording.json");
  if (!read) {
    check_error(read.error());
    return 0;
  }
  const auto result = evidence::replay(*read, "recording.json");
  if (!result) {
    check_error(result.error());
    return 0;
  }
  require(result->reserved_bytes_end >= 0);
  require(result->segments_made >= 0 && result->segments_made <= result->events);
  require(!result->equal() || result->segments_made == result->segments_recorded);
  return 0;
}
