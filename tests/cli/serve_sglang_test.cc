// `ullage serve --engine sglang` as a person and as a program ask it.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/json_answer.h"

namespace ullage {
namespace {

using testing::answer;
using testing::run;

double gib(const Json& bytes) { return bytes.get<double>() / static_cast<double>(kGiB); }

// https://github.com/xorbitsai/inference/issues/3481, one card of 48 GB: 47.24 GiB free before the weights, which took
// 27.57; 91,749 tokens, 5.27 GiB left behind the pools.
TEST(ServeSglang, AnswersAsTheLogDoes) {
  const Json said = answer("serve Qwen/Qwen3-14B --engine sglang --engine-version 0.4.6 --gpu-memory 47.64GiB");
  EXPECT_NEAR(gib(said["weights_bytes"]), 27.57, 0.06);
  EXPECT_EQ(said["kv"]["bytes_per_token"], 163840);
  EXPECT_NEAR(said["kv"]["tokens"].get<double>(), 91749, 0.005 * 91749);
  EXPECT_EQ(said["kv"]["tokens"], said["kv"]["tokens_printed"]);
  EXPECT_EQ(said["setup"]["mem_fraction_static"], 0.88);
  EXPECT_EQ(said["setup"]["max_running_requests"], 2048);
  EXPECT_EQ(said["setup"]["context_length"], 40960);
  EXPECT_EQ(said["startup"]["log"].size(), 5U);
  EXPECT_EQ(said["startup"]["log"][3].get<std::string>().substr(0, 29), "Memory pool end. avail mem=5.");
}

TEST(ServeSglang, AddsUp) {
  for (const char* line : {"serve meta-llama/Llama-3.1-8B --engine sglang --gpu h100",
                           "serve Qwen/Qwen3-Next-80B-A3B-Instruct --engine sglang --gpu 4xh200 --tp 4",
                           "serve openai/gpt-oss-20b --engine sglang --gpu h100",
                           "serve meta-llama/Llama-3.1-70B --engine sglang --gpu 8xh100 --tp 4 --pp 2"}) {
    const Json said = answer(line);
    std::int64_t allocated = 0;
    std::int64_t process = 0;
    for (const Json& component : said["components"]) {
      const auto bytes = component["bytes"].get<std::int64_t>();
      process += bytes;
      if (component["in"] == "allocated") allocated += bytes;
    }
    EXPECT_EQ(said["peak"]["allocated_bytes"], allocated) << line;
    EXPECT_EQ(said["peak"]["process_bytes"], process) << line;
    EXPECT_EQ(said["device"]["usable_bytes"].get<std::int64_t>() - process, said["headroom_bytes"]) << line;
  }
}

TEST(ServeSglang, MoreShareMoreTokens) {
  std::int64_t before = 0;
  for (const char* share : {"0.5", "0.6", "0.7", "0.8", "0.9"}) {
    const Json said =
        answer(std::string("serve meta-llama/Llama-3.1-8B --engine sglang --gpu h100 --mem-fraction-static ") + share);
    const auto tokens = said["kv"]["tokens"].get<std::int64_t>();
    EXPECT_GT(tokens, before) << share;
    before = tokens;
  }
}

// The two ways of running out, and the least share that is enough.
TEST(ServeSglang, TellsTooLowFromTooHigh) {
  const std::string line = "serve meta-llama/Llama-3.1-8B --engine sglang --gpu rtx-4090 --mem-fraction-static ";
  const Json low = answer(line + "0.5");
  EXPECT_EQ(low["fits"], false);
  EXPECT_NE(low["startup"]["refusal"].get<std::string>().find("Please try to increase --mem-fraction-static"),
            std::string::npos);
  EXPECT_NE(low["startup"]["outcome"].get<std::string>().find("raise"), std::string::npos);
  const Json high = answer(line + "0.99");
  EXPECT_EQ(high["fits"], false);
  EXPECT_NE(high["startup"]["outcome"].get<std::string>().find("lower"), std::string::npos);
  EXPECT_EQ(answer(line + "0.8")["fits"], true);
}

TEST(ServeSglang, TellsWhetherAWorkloadFits) {
  const std::string line =
      "serve meta-llama/Llama-3.1-8B --engine sglang --max-total-tokens 10000 --input-len 900 --output-len 101";
  const Json most = answer(line + " --concurrency max")["startup"]["workload"];
  EXPECT_EQ(most["max_concurrency"], 10);
  EXPECT_EQ(most["holds"], nullptr);
  EXPECT_EQ(answer(line + " --concurrency 10")["startup"]["workload"]["holds"], true);
  EXPECT_EQ(answer(line + " --concurrency 11")["startup"]["workload"]["holds"], false);
  EXPECT_EQ(answer(line + " --concurrency 10 --max-running-requests 4")["startup"]["workload"]["holds"], false);
}

TEST(ServeSglang, OptionsBelongToTheirEngine) {
  EXPECT_EQ(run("serve gpt2 --mem-fraction-static 0.8").err,
            "ullage: --mem-fraction-static: is an option of --engine sglang, not of transformers\n");
  EXPECT_EQ(run("serve gpt2 --engine vllm --tp 2").err, "ullage: --tp: is an option of --engine sglang, not of vllm\n");
  EXPECT_EQ(run("serve gpt2 --engine sglang --max-model-len 1024").err,
            "ullage: --max-model-len: is an option of --engine vllm, not of sglang\n");
  // Both have it.
  EXPECT_EQ(run("serve gpt2 --engine sglang --kv-cache-dtype fp8_e5m2").status, 0);
}

TEST(ServeSglang, RefusesInOneLine) {
  for (const char* line :
       {"serve resnet50 --engine sglang", "serve t5-small --engine sglang", "serve gpt2 --engine sglang --tp 5",
        "serve gpt2 --engine sglang --gpu 2xh100 --tp 4", "serve gpt2 --engine sglang --engine-version newest",
        "serve gpt2 --engine sglang --kv-cache-dtype fp4_e2m1", "serve gpt2 --engine sglang --max-running-requests 0",
        "serve gpt2 --engine sglang --mem-fraction-static 1.2", "serve gpt2 --engine sglang --page-size 0",
        "serve gpt2 --engine sglang --speculative-algorithm EAGLE3", "serve gpt2 --engine sglang --html x.html",
        "serve gpt2 --engine sglang --gpu gtx-1080-ti", "serve gpt2 --engine sglang --concurrency 4",
        "serve gpt2 --engine sglang --quantization compressed-tensors"}) {
    const auto captured = run(line);
    EXPECT_EQ(captured.status, 2) << line;
    EXPECT_TRUE(captured.out.empty()) << line;
    EXPECT_EQ(std::count(captured.err.begin(), captured.err.end(), '\n'), 1) << captured.err;
  }
  EXPECT_EQ(run("serve meta-llama/Llama-3.1-70B --engine sglang --gpu rtx-3090 --require-fit").status, 3);
}

TEST(ServeSglang, ReadsMinusOne) {
  EXPECT_EQ(answer("serve gpt2 --engine sglang --chunked-prefill-size -1")["setup"]["chunked_prefill_size"], -1);
}

TEST(ServeSglang, EveryComponentSaysWhy) {
  const Json said = answer("serve Qwen/Qwen3-Next-80B-A3B-Instruct --engine sglang --gpu 4xh100 --tp 4");
  for (const Json& component : said["components"]) {
    EXPECT_FALSE(component["why"]["rule"].get<std::string>().empty()) << component["name"];
    EXPECT_FALSE(component["why"]["source"].get<std::string>().empty()) << component["name"];
  }
  EXPECT_NE(said["components"].dump().find("rule sglang-reserve-token"), std::string::npos);
}

TEST(ServeSglang, WarnsOfWhatItDoesNotKnow) {
  const Json said = answer("serve gpt2 --engine sglang --gpu 4xh100 --engine-version 0.9");
  EXPECT_EQ(said["warnings"].size(), 2U);
}

}  // namespace
}  // namespace ullage
