#include "speed/count.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace ullage::speed {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ULLAGE_SANITIZED
#endif
#endif
#if defined(ULLAGE_SANITIZED) || defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
constexpr bool kRealBuild = false;
#else
constexpr bool kRealBuild = true;
#endif

std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) out += buffer.data();
  ::pclose(pipe);
  return out;
}

}  // namespace

bool is_real_build() { return kRealBuild; }

bool can_count() { return !output_of("command -v valgrind").empty(); }

std::string this_program() {
  const std::string program = output_of("readlink -f /proc/" + std::to_string(::getpid()) + "/exe");
  return program.substr(0, program.find('\n'));
}

std::int64_t instructions(const std::string& arguments) {
  const std::string out = output_of("valgrind --tool=callgrind --callgrind-out-file=/dev/null " + this_program() + " " +
                                    arguments + " 2>&1");
  const std::size_t at = out.find("Collected : ");
  if (at == std::string::npos) ADD_FAILURE() << out;
  return at == std::string::npos ? -1 : std::atoll(out.c_str() + at + 12);
}

}  // namespace ullage::speed
