// `ullage mfu` and `ullage textbook`: the figures that courses and interviews ask for come out of a command.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/json_answer.h"

namespace ullage {
namespace {

using testing::answer;
using testing::run;

double line_of(const Json& document, std::string_view name) {
  for (const Json& line : document["lines"]) {
    if (line["name"] == name) return line["value"].get<double>();
  }
  ADD_FAILURE() << "no line " << name;
  return 0;
}

struct Asked {
  const char* line;
  const char* name;
  double value;
  double within;
};

constexpr double kGib = 1024.0 * 1024 * 1024;

// Figures as their sources print them, within half of their last digit.
constexpr Asked kAsked[] = {
    {"7B --dtype fp32", "weights", 26.08 * kGib, 0.005 * kGib},
    {"13B --dtype fp32", "weights", 52e9, 1},
    {"11B --dtype fp32", "weights", 41 * kGib, 0.5 * kGib},
    {"65B --dtype fp16 --gpu v100-pcie-32gb", "cards", 5, 0},
    {"6B --dtype int8", "training_units_kernels", 25.3e9, 1},
    {"6B --dtype int8 --layers 32 --hidden 4096 --ffn 11008 --seq-len 2048", "sample", 990e6, 0.5e6},
    {"6B --dtype int8 --layers 32 --hidden 4096 --ffn 11008 --gpu a100-sxm-80gb", "samples", 55, 0},
    {"13B", "serving_1.3", 33.8e9, 1},
    {"13B --quantization int8", "serving_1.3", 16.9e9, 1},
    {"70B --quantization int4", "serving_1.3", 45.5e9, 1},
    {"70B --dtype fp16", "serving_1.2", 168e9, 1},
    {"textbook --lora 8 --matrix 1024x512", "lora", 12288, 0},
    {"textbook --bytes-per-token 57344 --micro-batch 16", "cache_batch", 1.75 * kGib, 1},
    {"textbook --bytes-per-token 57344 --cache-memory 40GiB", "cache_blocks", 5851, 0},
    {"textbook --bytes-per-token 57344 --cache-memory 40GiB", "cache_sequences", 365, 0},
    {"7.5B --gpus 64", "zero_0", 120e9, 0.5e9},
    {"7.5B --gpus 64", "zero_1", 31.4e9, 0.05e9},
    {"7.5B --gpus 64", "zero_2", 16.6e9, 0.05e9},
    {"7.5B --gpus 64", "zero_3", 1.9e9, 0.05e9},
};

class TextbookFigures : public ::testing::TestWithParam<Asked> {};

TEST_P(TextbookFigures, ComeOut) {
  EXPECT_NEAR(line_of(answer(GetParam().line), GetParam().name), GetParam().value, GetParam().within)
      << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(All, TextbookFigures, ::testing::ValuesIn(kAsked));

TEST(Textbook, AModelOfAboutThatSizeAnswersInFull) {
  const Json said = answer("7B");
  const Json step = answer("train " + said["model"]["name"].get<std::string>());
  EXPECT_EQ(said["model"]["parameters"], step["model"]["parameters"]);
  EXPECT_EQ(said["model"]["weight_bytes"], step["model"]["parameter_bytes"]);
  EXPECT_EQ(said["model"]["step"]["allocated_bytes"], step["peak"]["allocated_bytes"]);
}

TEST(Textbook, ATrainingStepOfASizeIsThatOfTheModelThatStandsForIt) {
  const Json size = answer("train 7B --gpu h100");
  const Json model = answer("train " + size["model"]["name"].get<std::string>() + " --gpu h100");
  EXPECT_EQ(size["peak"], model["peak"]);
  EXPECT_FALSE(model.contains("textbook"));
  ASSERT_TRUE(size.contains("textbook"));
  EXPECT_EQ(size["textbook"][0]["value"], 112'000'000'000);
  EXPECT_NE(size["warnings"].dump().find("7B is a size and no model"), std::string::npos);
}

TEST(Textbook, SaysWhereFlashAttentionDoesNotRun) {
  EXPECT_NE(answer("65B --gpu v100-pcie-32gb")["warnings"].dump().find("flash attention 2 does not run"),
            std::string::npos);
  EXPECT_EQ(answer("65B --gpu a100")["warnings"].size(), 0U);
}

TEST(Mfu, ByFlops) {
  const Json said = answer("mfu --tflops 100 --gpu a100-sxm-80gb");
  EXPECT_NEAR(said["mfu"].get<double>(), 0.3205, 0.00005);
  EXPECT_EQ(said["hfu"], said["mfu"]);
  EXPECT_TRUE(said["warnings"].empty());
  const Json rerun = answer("mfu --tflops 100 --gpu a100-sxm-80gb --recompute full");
  EXPECT_NEAR(rerun["hfu"].get<double>(), 0.3205 * 4 / 3, 0.0001);
  EXPECT_EQ(answer("mfu --tflops 100 --gpu a100 --recompute selective")["hfu"], nullptr);
}

TEST(Mfu, AboveThePeakIsDoubted) {
  const Json said = answer("mfu --tflops 900 --gpu a100-sxm-80gb");
  ASSERT_EQ(said["warnings"].size(), 1U);
  EXPECT_NE(said["warnings"][0].get<std::string>().find("more than the cards' peak"), std::string::npos);
}

TEST(Mfu, ByThroughput) {
  const Json said = answer("mfu --examples-per-second 3 --seq-len 2048 --gpus 4 --reference 3300");
  EXPECT_EQ(said["measured"]["tokens_per_second_per_gpu"], 1536.0);
  EXPECT_NEAR(said["reference"]["ratio"].get<double>(), 0.465, 0.0005);
  EXPECT_EQ(said["mfu"], nullptr);
}

TEST(Mfu, APeakOfCores) {
  EXPECT_NEAR(answer("mfu --cores 1280 --clock-ghz 1.4")["device"]["peak_tflops"].get<double>(), 3.584, 1e-9);
}

// Three ways of counting agree but for what each leaves out: attention, and half of it that a causal kernel skips.
TEST(Mfu, RulesAreInOrder) {
  const Json said = answer("mfu llama-2-7b-hf --tokens-per-second 3000 --seq-len 4096 --gpu a100");
  ASSERT_EQ(said["rules"].size(), 3U);
  const double least = said["rules"][0]["flops_per_token"];
  const double counted = said["rules"][1]["flops_per_token"];
  const double most = said["rules"][2]["flops_per_token"];
  EXPECT_LT(least, counted);
  EXPECT_LT(counted, most);
  EXPECT_NEAR(most - least, 12.0 * 32 * 4096 * 4096, 1);
  EXPECT_NEAR(counted / least, 1 + 6.0 * 32 * 4096 * 4096 / least, 0.05);
  EXPECT_EQ(said["mfu"], said["rules"][2]["mfu"]);
}

TEST(Mfu, RecomputeShowsInTheHardwaresShareAlone) {
  const std::string line = "mfu gpt2 --tokens-per-second 100000 --seq-len 1024 --gpu a100";
  const Json plain = answer(line);
  const Json rerun = answer(line + " --recompute full");
  EXPECT_EQ(plain["mfu"], rerun["mfu"]);
  EXPECT_GT(rerun["hfu"].get<double>(), plain["hfu"].get<double>() * 1.3);
}

}  // namespace
}  // namespace ullage
