// How many instructions a prediction takes. Counts repeat on a busy machine, times do not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace ullage {
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

// Of one predicted step. The bounds leave a tenth to compilers and to the standard library.
constexpr std::int64_t kMostSpliced = 3'000'000;
constexpr std::int64_t kMostFull = 16'600'000;
constexpr std::int64_t kMostReplayed = 11'200'000;  // 12.5 million took 1.8 ms; it may take 3
constexpr std::int64_t kMostAsked = 30'500'000;
constexpr std::int64_t kMostFits = 600'000'000;

std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) out += buffer.data();
  ::pclose(pipe);
  return out;
}

// Instructions that valgrind counts in a run of this program, or -1.
std::int64_t instructions(const std::string& arguments) {
  const std::string program = output_of("readlink -f /proc/" + std::to_string(::getpid()) + "/exe");
  const std::string out = output_of("valgrind --tool=callgrind --callgrind-out-file=/dev/null " +
                                    program.substr(0, program.find('\n')) + " " + arguments + " 2>&1");
  const std::size_t at = out.find("Collected : ");
  if (at == std::string::npos) ADD_FAILURE() << out;
  return at == std::string::npos ? -1 : std::atoll(out.c_str() + at + 12);
}

std::int64_t per_step(const char* how) {
  const std::int64_t one = instructions("--steps 1 " + std::string(how));
  const std::int64_t three = instructions("--steps 3 " + std::string(how));
  return (three - one) / 2;
}

class StepCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kRealBuild) GTEST_SKIP() << "only an optimised build without sanitizers tells anything";
    if (output_of("command -v valgrind").empty()) GTEST_SKIP() << "valgrind is not installed";
  }
};

TEST_F(StepCounts, WithEqualLayersSpliced) {
  const std::int64_t count = per_step("--spliced");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostSpliced);
}

TEST_F(StepCounts, InFull) {
  const std::int64_t count = per_step("--full");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostFull);
}

TEST_F(StepCounts, SplicedAndThroughTheAllocator) {
  const std::int64_t count = per_step("--replayed");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostReplayed);
}

TEST_F(StepCounts, OfAWholeQuestion) {
  const std::int64_t count = per_step("--asked");
  std::cout << count << " instructions a step\n";
  EXPECT_LE(count, kMostAsked);
}

// Of all models and all cards: 200 ms at three instructions a nanosecond.
TEST_F(StepCounts, OfFittingAllModelsToAllCards) {
  const std::int64_t count = instructions("--fits 1");
  std::cout << count << " instructions for the whole catalogue\n";
  EXPECT_LE(count, kMostFits);
}

}  // namespace
}  // namespace ullage
