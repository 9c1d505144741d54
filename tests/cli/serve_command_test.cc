// `ullage serve` as a person and as a program ask it.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::run;

Json answer(const std::string& line) {
  const auto json = parse_json(run(line + " --json").out, "answer");
  EXPECT_TRUE(json) << run(line + " --json").err;
  return json ? *json : Json::object();
}

constexpr const char* kLlama = "serve meta-llama/Llama-3.1-8B --engine transformers --batch 2 --seq-len 1000";

TEST(ServeCommand, TellsWhatTheCacheHolds) {
  const Json said = answer(std::string(kLlama) + " --new-tokens 25");
  EXPECT_EQ(said["command"], "serve");
  // The last token is chosen and never put in: 1024 tokens of two sequences, 131072 bytes each.
  EXPECT_EQ(said["kv"]["tokens"], 2 * 1024);
  EXPECT_EQ(said["kv"]["bytes_per_token"], 131072);
  EXPECT_EQ(said["kv"]["bytes"], 2 * 1024 * 131072);
  EXPECT_EQ(said["phases"][0]["name"], "before_prefill");
  std::int64_t sum = 0;
  for (const Json& component : said["components"]) {
    if (component["in"] == "allocated") sum += component["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(said["peak"]["allocated_bytes"], sum);
}

TEST(ServeCommand, ARoomyCacheIsThereFromTheStart) {
  const auto bytes = [](const Json& said, const char* phase) {
    for (const Json& one : said["phases"]) {
      if (one["name"] == phase) return one["components"]["kv_cache"].get<std::int64_t>();
    }
    return std::int64_t{0};
  };
  const Json grown = answer(std::string(kLlama) + " --new-tokens 25");
  const Json whole = answer(std::string(kLlama) + " --new-tokens 25 --cache static");
  EXPECT_LT(bytes(grown, "after_prefill"), bytes(grown, "after_decode"));
  EXPECT_EQ(bytes(whole, "after_prefill"), bytes(whole, "after_decode"));
}

TEST(ServeCommand, LongAnswersEndWhereTokenByTokenWould) {
  const std::string line = "serve gemma-3-1b-it --seq-len 600 --new-tokens 300";
  const Json said = answer(line);
  EXPECT_EQ(said["kv"]["tokens"], 899);
}

TEST(ServeCommand, RefusesWhatIsNotThereInOneLine) {
  EXPECT_EQ(run("serve Llama-3.1-8B --engine sglang").status, 2);
  EXPECT_NE(run("serve Llama-3.1-8B --engine sglang").err.find("not in this version"), std::string::npos);
  EXPECT_EQ(run("serve resnet50").status, 2);
  EXPECT_EQ(run("serve Llama-3.1-8B --new-tokens 0").status, 2);
  EXPECT_EQ(run("serve Llama-3.1-8B --gpu rtx-4070 --require-fit").status, 3);
}

}  // namespace
}  // namespace ullage
