// `--gpu local` with what a driver would say.
#include <gtest/gtest.h>

#include <cstdint>

#include "captured_run.h"

namespace ullage::cli {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

Expected<std::vector<hardware::LocalDevice>> two_cards() {
  std::vector<hardware::LocalDevice> out(2);
  out[0].name = "NVIDIA GeForce RTX 4090";
  out[1].name = "Tesla T4";
  for (hardware::LocalDevice& device : out) {
    device.driver = "535.129.03";
    device.total_bytes = 16000 * kMib;
    device.reserved_bytes = 400 * kMib;
  }
  out[1].index = 1;
  out[1].used_bytes = 1000 * kMib;
  return out;
}

testing::Captured run_here(const std::string& line) {
  testing::Captured out;
  const Streams streams{[&](std::string_view text) -> Expected<void> {
                          out.out += text;
                          return {};
                        },
                        [&](std::string_view text) { out.err += text; },
                        {}};
  Files files = real_files();
  files.devices = two_cards;
  out.status = run(testing::words_of(line), streams, files);
  return out;
}

TEST(LocalDevice, IsTheFirstCardWithWhatItsDriverOffers) {
  const auto answer = run_here("train gpt2 --gpu local --json");
  ASSERT_EQ(answer.status, kAnswered) << answer.err;
  EXPECT_NE(answer.out.find("\"usable_bytes\": 16357785600"), std::string::npos) << answer.out;  // 15,600 MiB
  EXPECT_NE(answer.out.find("card 0 of 2 of this machine: NVIDIA GeForce RTX 4090, driver 535.129.03"),
            std::string::npos);
}

TEST(LocalDevice, LeavesToOthersWhatTheyHold) {
  const auto answer = run_here("train gpt2 --gpu local:1 --json");
  ASSERT_EQ(answer.status, kAnswered) << answer.err;
  EXPECT_NE(answer.out.find("\"usable_bytes\": 15309209600"), std::string::npos) << answer.out;  // 14,600 MiB
  const auto empty = run_here("train gpt2 --gpu local:1 --used 0 --json");
  ASSERT_EQ(empty.status, kAnswered) << empty.err;
  EXPECT_NE(empty.out.find("\"usable_bytes\": 16357785600"), std::string::npos) << empty.out;
}

TEST(LocalDevice, IsWhatFitIsAboutWhereNothingIsNamed) {
  const auto answer = run_here("fit --rows 1 --quiet");
  ASSERT_EQ(answer.status, kAnswered) << answer.err;
  ASSERT_EQ(answer.out.rfind("ullage serve ", 0), 0U) << answer.out;
  EXPECT_NE(answer.out.find(" --gpu local "), std::string::npos);
  const std::string line = answer.out.substr(sizeof("ullage"), answer.out.size() - sizeof("ullage") - 1);
  EXPECT_EQ(run_here(line + " --require-fit").status, kAnswered) << line;
}

TEST(LocalDevice, IsOneThatTheMachineHas) {
  for (const std::string name : {"local:2", "local:", "local:x", "local:-1", "local:99999999999999999999"}) {
    const auto answer = run_here("train gpt2 --gpu " + name);
    EXPECT_EQ(answer.status, kWrongInput);
    EXPECT_EQ(answer.err, "ullage: --gpu: '" + name + "' is no card of this machine; they are local:0 to local:1\n");
  }
}

}  // namespace
}  // namespace ullage::cli
