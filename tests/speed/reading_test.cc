// How many instructions and how much memory it takes to read what is in front of a checkpoint: the header of 90,000
// tensors, and an index of 30 MB. Files are made here, in the form of published ones.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>

#include "speed/count.h"

namespace ullage {
namespace {

// Of one file that is read. 20 ms are allowed: a core of 2 GHz took 19 ms for 148 million instructions of the first and
// 16 ms for 130 million of the second.
constexpr std::int64_t kMostForHeader = 165'000'000;
constexpr std::int64_t kMostForIndex = 142'000'000;
constexpr std::int64_t kMostKib = 80 * 1000 * 1000 / 1024;

constexpr int kLayers = 59;
constexpr int kExperts = 256;

void for_each_expert(const std::function<void(const std::string& name)>& visit) {
  for (int layer = 3; layer < 3 + kLayers; ++layer) {
    for (int expert = 0; expert < kExperts; ++expert) {
      for (const char* part : {"gate", "up", "down"}) {
        visit("model.layers." + std::to_string(layer) + ".mlp.experts." + std::to_string(expert) + "." + part +
              "_proj.weight");
      }
    }
  }
}

// Every matrix with its scales: 90,624 tensors, and no data.
std::string header() {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::int64_t at = 0;
  const auto add = [&](const std::string& name, const char* type, const char* shape, std::int64_t bytes) {
    json += ",\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[)" +
            std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
    at += bytes;
  };
  for_each_expert([&](const std::string& name) {
    add(name, "F8_E4M3", "[2048,7168]", 2048 * 7168);
    add(name + "_scale_inv", "F32", "[16,56]", 16 * 56 * 4);
  });
  json += "}";
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  return length + json;
}

// As transformers writes it: indented, a line for each tensor.
std::string index() {
  std::string json = "{\n  \"metadata\": {\n    \"total_size\": 1000000000000\n  },\n  \"weight_map\": {\n";
  for (int part = 1; json.size() < 30'000'000; ++part) {
    const std::string file =
        "model-" + std::to_string(10000 + part).substr(1) + "-of-0" + std::to_string(part) + ".safetensors";
    for_each_expert([&](const std::string& name) {
      json += "    \"draft." + std::to_string(part) + "." + name + "\": \"" + file + "\",\n";
    });
  }
  json.resize(json.size() - 2);
  return json + "\n  }\n}\n";
}

class Reading : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!speed::is_real_build()) GTEST_SKIP() << "only an optimised build without sanitizers tells anything";
    folder_ = std::filesystem::temp_directory_path() / ("ullage-reading-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const char* name, const std::string& content) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  // Of a process that reads the file once.
  static std::int64_t most_resident_kib(const std::string& path) {
    const std::string program = speed::this_program();
    const ::pid_t child = ::fork();
    if (child == 0) {
      ::execl(program.c_str(), program.c_str(), "--read", path.c_str(), "1", nullptr);
      ::_exit(127);
    }
    int status = 0;
    ::rusage usage{};
    if (::wait4(child, &status, 0, &usage) != child || status != 0) return -1;
    return usage.ru_maxrss;
  }

  static void expect_little(const std::string& path, std::int64_t most) {
    const std::int64_t kib = most_resident_kib(path);
    std::cout << kib << " KiB\n";
    EXPECT_GT(kib, 0);
    EXPECT_LE(kib, kMostKib);
    if (!speed::can_count()) GTEST_SKIP() << "valgrind is not installed";
    const std::int64_t once = speed::instructions("--read " + path + " 1");
    const std::int64_t thrice = speed::instructions("--read " + path + " 3");
    const std::int64_t count = (thrice - once) / 2;
    std::cout << count << " instructions a time\n";
    EXPECT_GT(count, 0);
    EXPECT_LE(count, most);
  }

  std::filesystem::path folder_;
};

TEST_F(Reading, TheHeaderOfNinetyThousandTensors) {
  expect_little(write("model.safetensors", header()), kMostForHeader);
}

TEST_F(Reading, AnIndexOfThirtyMegabytes) {
  expect_little(write("model.safetensors.index.json", index()), kMostForIndex);
}

}  // namespace
}  // namespace ullage
