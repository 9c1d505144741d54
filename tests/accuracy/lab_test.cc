// Training steps against PyTorch's own, measured in the lab: equal to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/run.h"
#include "corpus/resolve.h"
#include "corpus/score.h"

namespace ullage {
namespace {

// What the command prints, in process.
Json validate(std::vector<std::string> args) {
  std::string out;
  cli::Streams streams;
  streams.out = [&](std::string_view text) -> Expected<void> {
    out += text;
    return {};
  };
  streams.err = [](std::string_view text) { ADD_FAILURE() << text; };
  args.insert(args.begin(), "validate");
  args.emplace_back("--json");
  EXPECT_EQ(cli::run(args, streams, cli::real_files()), 0);
  return Json::parse(out, nullptr, false);
}

void print(const Json& result) {
  for (const Json& summary : result.at("summaries")) {
    std::cout << "  " << summary.at("key").get<std::string>() << ": " << summary.at("equal") << " of "
              << summary.at("count") << " equal, largest error " << summary.at("largest") << "\n";
  }
  for (const Json& row : result.at("rows")) {
    if (row.at("error").get<double>() > 0) std::cout << "  " << row.dump() << "\n";
  }
}

void expect_lab_truth(const Json& result, std::size_t cases) {
  EXPECT_EQ(corpus::number_at(result, "cases.compared"), static_cast<double>(cases));
  EXPECT_EQ(corpus::number_at(result, "cases.failed"), 0.0);
  EXPECT_EQ(corpus::number_at(result, "values.not_computed"), 0.0);
  EXPECT_EQ(corpus::number_at(result, "cases.equal"), static_cast<double>(cases));
  for (const Json& summary : result.at("summaries")) {
    EXPECT_EQ(summary.at("equal"), summary.at("count")) << summary.at("key");
  }
}

// Every train*.jsonl of tests/data/lab, without its ending.
std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ULLAGE_TEST_DATA "/lab")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".jsonl" && name.starts_with("train")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t count_lines(const std::string& path) {
  std::ifstream file(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

class RecordedSteps : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedSteps, AreEqualToTheByte) {
  const std::string path = ULLAGE_TEST_DATA "/lab/" + GetParam() + ".jsonl";
  const Json result = validate({path});
  print(result);
  expect_lab_truth(result, count_lines(path));
}

INSTANTIATE_TEST_SUITE_P(Lab, RecordedSteps, ::testing::ValuesIn(recorded_files()), [](const auto& file) {
  std::string name = file.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Lab, AnotherCorpusIsEqualToTheByte) {
  const char* folder = std::getenv("ULLAGE_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "ULLAGE_CORPUS names no folder with lab-train.jsonl";
  const Json result = validate({std::string(folder) + "/lab-train.jsonl", "--where", "family=llama,mistral,gpt2",
                                "--where", "precision=fp32,bf16,fp16,amp-bf16,amp-fp16", "--where",
                                "optimizer=adamw,sgd,sgd-momentum,none", "--where", "lora=0"});
  print(result);
  expect_lab_truth(result, 55);
}

}  // namespace
}  // namespace ullage
