// `ullage serve --engine tensorrt-llm|mindie|lmdeploy|tgi` as a person and as a program ask it.
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

TEST(ServeBudget, AddsUp) {
  for (const char* line : {"serve meta-llama/Llama-3.1-8B --engine tensorrt-llm --gpu h100",
                           "serve Qwen/Qwen2.5-7B --engine mindie --gpu 910b",
                           "serve meta-llama/Llama-3.1-8B --engine lmdeploy --gpu a100-80gb",
                           "serve meta-llama/Llama-3.1-8B --engine lmdeploy --backend pytorch --gpu a100-80gb",
                           "serve meta-llama/Llama-3.1-8B --engine tgi --gpu l4"}) {
    const Json said = answer(line);
    std::int64_t allocated = 0;
    std::int64_t process = 0;
    for (const Json& component : said["components"]) {
      process += component["bytes"].get<std::int64_t>();
      if (component["in"] == "allocated") allocated += component["bytes"].get<std::int64_t>();
    }
    EXPECT_EQ(said["peak"]["allocated_bytes"], allocated) << line;
    EXPECT_EQ(said["peak"]["process_bytes"], process) << line;
    EXPECT_EQ(said["fits"], true) << line;
    EXPECT_EQ(said["kv"]["tokens"].get<std::int64_t>() * said["kv"]["bytes_per_token"].get<std::int64_t>(),
              said["kv"]["bytes"].get<std::int64_t>())
        << line;
    EXPECT_EQ(said["startup"]["refusal"], nullptr) << line;
  }
}

// https://github.com/NVIDIA/TensorRT-LLM/issues/224: 10,718 tokens.
TEST(ServeBudget, AnswersAsTensorRtsLogDoes) {
  const Json said = answer(
      "serve meta-llama/Llama-2-7b-chat-hf --engine tensorrt-llm --engine-version 0.5 --gpu a10 --dtype float16 "
      "--max_batch_size 25 --max_output_len 4096 --tokens_per_block 16 --kv_cache_free_gpu_mem_fraction 0.95");
  EXPECT_NEAR(said["kv"]["tokens"].get<double>(), 10718, 0.05 * 10718);
  EXPECT_EQ(said["kv"]["block_size"], 16);
  EXPECT_EQ(said["startup"]["log"][0].get<std::string>().rfind("Using ", 0), 0U);
}

// MindIE's guide: Floor[(64 - 3 - 130 / 8 - 2) x 0.8] = 34 GB a card for a model of 65 billion parameters on eight.
TEST(ServeBudget, AnswersAsMindiesGuideDoes) {
  const Json said =
      answer("serve meta-llama/Llama-3.1-70B --engine mindie --gpu 8x910b --gpu-memory 64GiB --world-size 8");
  // 16.46 GiB of weights on each here: Floor[(64 - 3 - 16.46 - 2) x 0.8] = 34, in whole blocks of 128 x 40 KiB.
  EXPECT_NEAR(said["kv"]["bytes"].get<double>(), 34.0 * static_cast<double>(kGiB), 128 * 40 * 1024);
  const Json given =
      answer("serve Qwen/Qwen2.5-7B --engine mindie --npu-mem-size 40 --input-len 1024 --output-len 1024");
  EXPECT_EQ(given["kv"]["bytes_per_token"], 57344);
  EXPECT_EQ(given["kv"]["blocks"], 5851);
  EXPECT_EQ(given["startup"]["workload"]["blocks_per_request"], 16);
}

TEST(ServeBudget, QuantisedCachesHoldMore) {
  const std::string line = "serve internlm/internlm2_5-7b-chat --engine lmdeploy --gpu a100-80gb --quant-policy ";
  const auto tokens = [&](const char* policy) { return answer(line + policy)["kv"]["tokens"].get<double>(); };
  // docs/en/quantization/kv_quant.md: twice and four times as many blocks, but for scales of four bytes a head.
  EXPECT_NEAR(tokens("8") / tokens("0"), 2.0 * 128 / (128 + 4), 0.01);
  EXPECT_NEAR(tokens("4") / tokens("0"), 4.0 * 128 / (128 + 8), 0.01);
}

TEST(ServeBudget, RefusesInOneLine) {
  for (const char* line :
       {"serve gpt2 --engine mindie --gpu h100", "serve gpt2 --engine tensorrt-llm --gpu 910b",
        "serve gpt2 --engine tgi --max-model-len 8", "serve gpt2 --engine mindie --npu-mem-size many",
        "serve gpt2 --engine tensorrt-llm --tp 5", "serve gpt2 --engine tensorrt-llm --engine-version new",
        "serve gpt2 --engine tgi --engine-version 0.9", "serve gpt2 --engine lmdeploy --quant-policy 3",
        "serve gpt2 --engine tgi --cuda-memory-fraction 2", "serve gpt2 --engine tgi --max-input-tokens 4096",
        "serve gpt2 --engine tgi --concurrency 4", "serve resnet50 --engine tgi",
        "serve gpt2 --engine tensorrt-llm --gpu 2xh100 --tp 4", "serve gpt2 --engine tensorrt-llm --npu-mem-size 4"}) {
    const auto captured = run(line);
    EXPECT_EQ(captured.status, 2) << line;
    EXPECT_TRUE(captured.out.empty()) << line;
    EXPECT_EQ(std::count(captured.err.begin(), captured.err.end(), '\n'), 1) << captured.err;
  }
  EXPECT_EQ(run("serve meta-llama/Llama-3.1-70B --engine tgi --gpu l4 --require-fit").status, 3);
}

TEST(ServeBudget, SaysWhatARefusalLacks) {
  const Json said = answer("serve meta-llama/Llama-3.1-70B --engine tgi --gpu l4");
  EXPECT_EQ(said["fits"], false);
  EXPECT_LT(said["headroom_bytes"].get<std::int64_t>(), 0);
  EXPECT_FALSE(said["startup"]["refusal"].get<std::string>().empty());
}

TEST(ServeBudget, GivesRulesAndSources) {
  const auto captured = run("serve gpt2 --engine tgi --gpu l4 --why kv_cache");
  EXPECT_EQ(captured.status, 0);
  EXPECT_NE(captured.out.find("rule tgi-room-3.3"), std::string::npos) << captured.out;
  EXPECT_EQ(answer("engines mindie-fraction")["engines"][3]["rules"][0]["id"], "mindie-fraction");
}

}  // namespace
}  // namespace ullage
