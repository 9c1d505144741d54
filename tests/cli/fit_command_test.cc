// `ullage fit`: what each row promises is asked of `ullage serve` again.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::run;

Json answer(const std::vector<std::string>& words) {
  const auto captured = run(words);
  const auto json = parse_json(captured.out, "answer");
  EXPECT_TRUE(json) << captured.err;
  return json ? *json : Json::object();
}

Json served(const Json& row) {
  auto words = row["args"].get<std::vector<std::string>>();
  words.push_back("--json");
  return answer(words);
}

std::int64_t option(const Json& row, const std::string& name) {
  const auto words = row["args"].get<std::vector<std::string>>();
  const auto at = std::find(words.begin(), words.end(), name);
  return at == words.end() ? 0 : std::stoll(*(at + 1));
}

// Models taught as sizes on the cards that people buy.
TEST(FitCommand, EveryRowOfTheTableFitsByTheArgumentsItPrints) {
  const Json table = answer({"fit", "7B,13B,70B", "--gpu", "rtx-4070,rtx-4090,rtx-5090", "--json"});
  ASSERT_GE(table["rows"].size(), 9U);
  for (const Json& row : table["rows"]) {
    ASSERT_TRUE(row["fits"]) << row.dump();
    const Json said = served(row);
    EXPECT_EQ(said["fits"], true) << row["args"].dump();
    EXPECT_EQ(said["headroom_bytes"], row["headroom_bytes"]);
    EXPECT_EQ(said["device"]["count"], row["cards"]);
    EXPECT_EQ(option(row, "--seq-len") + option(row, "--new-tokens"), row["context_tokens"]);
    EXPECT_GE(row["context_tokens"], table["least_tokens"]);
  }
}

TEST(FitCommand, TheNextContextDoesNotFit) {
  const Json table = answer({"fit", "13B", "--gpu", "rtx-4090", "--json"});
  const std::int64_t step = table["least_tokens"].get<std::int64_t>() / 8;
  for (const Json& row : table["rows"]) {
    if (row["at_the_limit"]) continue;
    auto words = row["args"].get<std::vector<std::string>>();
    const auto at = std::find(words.begin(), words.end(), "--seq-len");
    *(at + 1) = std::to_string(std::stoll(*(at + 1)) + step);
    words.push_back("--json");
    EXPECT_EQ(answer(words)["fits"], false) << row["args"].dump();
  }
}

// 13.5 GB of weights at 1,008 GB/s, and what is kept of 2,048 tokens: 524,288 bytes each.
TEST(FitCommand, TellsSpeedFromTheBandwidth) {
  const Json row = answer({"fit", "7B", "--gpu", "rtx-4090", "--json"})["rows"][0];
  EXPECT_EQ(row["quantization"], "none");
  EXPECT_EQ(row["weight_bytes"], 2 * std::int64_t{6738415616});
  const double expected = 1008e9 / (2 * 6738415616.0 + 2048 * 524288.0);
  EXPECT_NEAR(row["tokens_per_second"].get<double>(), expected, 1e-6 * expected);
  EXPECT_NEAR(row["chinese_characters_per_second"].get<double>(), expected / 0.6, 1e-6 * expected);
  EXPECT_EQ(row["bound"], "memory");
  EXPECT_EQ(row["power"]["cards_w"], 450);
  EXPECT_EQ(row["power"]["supply_w"], 850);
}

TEST(FitCommand, NoCardHasALinkThatItDoesNotHave) {
  for (const std::string card : {"rtx-4090", "rtx-5090"}) {
    for (const std::string& line :
         {"fit 70B --gpu " + card + " --interconnect nvlink", "serve 7B --gpu 2x" + card + " --interconnect nvlink"}) {
      const auto refused = run(line);
      EXPECT_EQ(refused.status, 2) << line;
      EXPECT_NE(refused.err.find("has no NVLink: its cards reach each other over PCIe"), std::string::npos)
          << refused.err;
    }
  }
  EXPECT_EQ(run("fit 7B --gpu h100 --interconnect nvlink").status, 0);
  EXPECT_EQ(run("fit 7B --gpu rtx-4090 --interconnect pcie").status, 0);
}

TEST(FitCommand, RanksTheCatalogueForOneCard) {
  const Json table = answer({"fit", "--gpu", "rtx-4090", "--rows", "4", "--json"});
  ASSERT_EQ(table["rows"].size(), 4U);
  EXPECT_GT(table["left_out"], 50);
  EXPECT_GT(table["not_fitting"], 5);
  std::int64_t before = table["rows"][0]["parameters"];
  for (const Json& row : table["rows"]) {
    EXPECT_EQ(row["cards"], 1);
    EXPECT_LE(row["parameters"], before);
    before = row["parameters"];
    EXPECT_EQ(served(row)["fits"], true) << row["args"].dump();
  }
}

TEST(FitCommand, NamesTheCardsForAModel) {
  const Json table = answer({"fit", "meta-llama/Llama-3.1-8B", "--rows", "3", "--json"});
  ASSERT_EQ(table["rows"].size(), 3U);
  for (const Json& row : table["rows"]) EXPECT_EQ(served(row)["fits"], true) << row["args"].dump();
}

TEST(FitCommand, ChoosesHalfPrecisionThatTheCardHas) {
  const Json row = answer({"fit", "1B", "--gpu", "t4", "--json"})["rows"][0];
  EXPECT_EQ(row["dtype"], "fp16");
  EXPECT_EQ(served(row)["setup"]["dtype"], "fp16");
}

TEST(FitCommand, SaysWhatNothingMakesFit) {
  const Json row = answer({"fit", "70B", "--gpu", "gtx-1060-6gb", "--json"})["rows"][0];
  EXPECT_EQ(row["fits"], false);
  EXPECT_EQ(row["cards"], nullptr);
  EXPECT_TRUE(row["args"].empty());
}

TEST(FitCommand, AModelThatIsNotModelledIsARowAmongTheOthers) {
  const auto captured = run("fit 7B,resnet50,1B --gpu rtx-4090 --json");
  EXPECT_EQ(captured.status, 0);
  const Json table = *parse_json(captured.out, "answer");
  ASSERT_EQ(table["rows"].size(), 3U);
  EXPECT_EQ(table["rows"][0]["fits"], true);
  EXPECT_EQ(table["rows"][0]["not_modelled"], nullptr);
  EXPECT_EQ(table["rows"][1]["model"], "resnet50");
  EXPECT_EQ(table["rows"][1]["fits"], nullptr);
  EXPECT_NE(table["rows"][1]["not_modelled"].dump().find("torchvision"), std::string::npos);
  EXPECT_EQ(table["rows"][2]["fits"], true);
  EXPECT_NE(run("fit 7B,resnet50 --gpu rtx-4090").out.find("not modelled: --engine:"), std::string::npos);
}

TEST(FitCommand, AQuantisedCheckpointIsAnsweredAsItIs) {
  const Json row = answer({"fit", "Qwen/Qwen3-32B-FP8", "--gpu", "rtx-6000-ada", "--json"})["rows"][0];
  EXPECT_EQ(row["quantization"], "fp8");
  EXPECT_EQ(served(row)["fits"], true) << row.dump();
  EXPECT_EQ(served(row)["setup"]["quantization"], "fp8");
  // Ampere dequantises it, which takes two cards of that size.
  const Json older = answer({"fit", "Qwen/Qwen3-32B-FP8", "--gpu", "rtx-a6000", "--json"})["rows"][0];
  EXPECT_EQ(older["quantization"], "none");
  EXPECT_EQ(older["cards"], 2);
  EXPECT_EQ(served(older)["fits"], true) << older.dump();
}

TEST(FitCommand, FindsCardsByTheirNamesWithoutTheMemory) {
  const Json row = answer({"fit", "1B", "--gpu", "rtx-3060", "--json"})["rows"][0];
  EXPECT_EQ(row["fits"], true);
}

TEST(FitCommand, RefusesWhatIsWrongInOneLine) {
  for (const char* line : {"fit no-such-model --gpu rtx-4090", "fit 7B --gpu no-such-card", "fit , --gpu rtx-4090",
                           "fit --gpu rtx-4090,rtx-5090", "fit resnet50 --gpu rtx-4090", "fit 7B --context 1",
                           "fit 99999999999B --gpu rtx-4090", "fit 7B,no-such-model --gpu rtx-4090"}) {
    const auto refused = run(line);
    EXPECT_EQ(refused.status, 2) << line;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

}  // namespace
}  // namespace ullage
