// `ullage serve --engine vllm` and `ullage engines` as a person and as a program ask them.
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

constexpr const char* kH100 =
    "serve meta-llama/Llama-3.1-8B-Instruct --engine vllm --engine-version 0.19.0 --gpu h100-sxm-80gb --gpu-memory "
    "79.19GiB --max-model-len 8192 --gpu-memory-utilization 0.95";

// A start-up log of vLLM 0.19.0 (https://github.com/llm-d-incubation/llm-d-planner/pull/205): weights 14.99 GiB, peak
// of activations 1.89, cache 58.11, 476,000 tokens, 58.11 requests.
TEST(ServeVllm, AnswersAsTheLogDoes) {
  const Json said = answer(kH100);
  EXPECT_NEAR(gib(said["weights_bytes"]), 14.99, 0.01);
  EXPECT_NEAR(gib(said["activation_peak_bytes"]), 1.89, 0.02);
  EXPECT_NEAR(gib(said["kv"]["bytes"]), 58.11, 0.03);
  EXPECT_EQ(said["kv"]["bytes_per_token"], 131072);
  EXPECT_NEAR(said["kv"]["tokens"].get<double>(), 476000, 300);
  EXPECT_EQ(said["kv"]["tokens"], said["kv"]["tokens_printed"]);
  EXPECT_NEAR(said["kv"]["max_concurrency"].get<double>(), 58.11, 0.04);
  EXPECT_EQ(said["fits"], true);
  EXPECT_EQ(said["startup"]["refusal"], nullptr);
  EXPECT_EQ(said["startup"]["log"].size(), 2U);
  EXPECT_EQ(said["phases"].size(), 0U);
  EXPECT_EQ(said["work"], nullptr);
}

// A tower's layers are weights and keep nothing: 36 layers of 2 key-value heads of 128, in 16 bits.
TEST(ServeVllm, TowersKeepNothing) {
  const Json said = answer("serve Qwen/Qwen2.5-VL-3B-Instruct --engine vllm --gpu a100-sxm-80gb");
  EXPECT_EQ(said["kv"]["bytes_per_token"], 36 * 2 * 2 * 128 * 2);
  EXPECT_NEAR(said["components"][0]["bytes"].get<double>(), said["model"]["parameter_bytes"].get<double>(),
              0.001 * said["model"]["parameter_bytes"].get<double>());
}

TEST(ServeVllm, AddsUp) {
  for (const char* line : {"serve meta-llama/Llama-3.1-8B --engine vllm --gpu h100",
                           "serve meta-llama/Llama-3.1-70B --engine vllm --gpu 8xh100 --tensor-parallel-size 4 "
                           "--pipeline-parallel-size 2"}) {
    const Json said = answer(line);
    std::int64_t allocated = 0;
    std::int64_t process = 0;
    for (const Json& component : said["components"]) {
      const auto bytes = component["bytes"].get<std::int64_t>();
      process += bytes;
      if (component["in"] == "allocated") allocated += bytes;
    }
    EXPECT_EQ(said["peak"]["allocated_bytes"], allocated);
    EXPECT_EQ(said["peak"]["process_bytes"], process);
    EXPECT_EQ(said["device"]["usable_bytes"].get<std::int64_t>() - process, said["headroom_bytes"]);
  }
}

TEST(ServeVllm, StagesHaveLinesOfTheirOwn) {
  const Json said = answer("serve meta-llama/Llama-3.1-8B --engine vllm --gpu 4xh100 --pipeline-parallel-size 4");
  ASSERT_EQ(said["ranks"].size(), 4U);
  EXPECT_EQ(said["ranks"][3]["name"], "pp3");
  std::int64_t sum = 0;
  for (const Json& rank : said["ranks"]) sum += rank["peak"]["process_bytes"].get<std::int64_t>();
  EXPECT_EQ(said["totals"]["process_bytes"], sum);
}

TEST(ServeVllm, FindsTheLongestRequest) {
  const std::string line = "serve meta-llama/Llama-3.1-8B --engine vllm --gpu rtx-3090 --max-model-len ";
  const Json most = answer(line + "max");
  const auto length = most["setup"]["max_model_len"].get<std::int64_t>();
  EXPECT_EQ(most["fits"], true);
  EXPECT_EQ(answer(line + std::to_string(length + 1))["fits"], false);
  EXPECT_EQ(answer(line + "131072")["fits"], false);
}

TEST(ServeVllm, ReadsVllmsShortNumbers) {
  EXPECT_EQ(answer("serve gpt2 --engine vllm --max-model-len 1K")["setup"]["max_model_len"], 1024);
  EXPECT_EQ(answer("serve gpt2 --engine vllm --max-model-len 1k")["setup"]["max_model_len"], 1000);
}

TEST(ServeVllm, TellsWhetherAWorkloadFits) {
  const std::string line = std::string(kH100) + " --input-len 1000 --output-len 24";
  const Json most = answer(line + " --concurrency max")["startup"]["workload"];
  EXPECT_EQ(most["blocks_per_request"], 64);
  EXPECT_EQ(most["holds"], nullptr);
  // 29,750 blocks, of which each takes 64.
  EXPECT_NEAR(most["max_concurrency"].get<double>(), 464, 1);
  EXPECT_EQ(answer(line + " --concurrency 400")["startup"]["workload"]["holds"], true);
  EXPECT_EQ(answer(line + " --concurrency 500")["startup"]["workload"]["holds"], false);
  EXPECT_EQ(answer(kH100)["startup"]["workload"], nullptr);
  EXPECT_EQ(run(std::string(kH100) + " --concurrency 5").status, 2);
  EXPECT_EQ(run(std::string(kH100) + " --input-len 9000 --output-len 1").status, 2);
}

TEST(ServeVllm, OptionsBelongToTheirEngine) {
  const auto mixed = run("serve gpt2 --max-model-len 1024");
  EXPECT_EQ(mixed.status, 2);
  EXPECT_EQ(mixed.err, "ullage: --max-model-len: is an option of --engine vllm, not of transformers\n");
  EXPECT_EQ(run("serve gpt2 --engine vllm --new-tokens 5").err,
            "ullage: --new-tokens: is an option of --engine transformers, not of vllm\n");
}

TEST(ServeVllm, RefusesInOneLine) {
  for (const char* line :
       {"serve resnet50 --engine vllm", "serve t5-small --engine vllm",
        "serve gpt2 --engine vllm --tensor-parallel-size 5",
        "serve gpt2 --engine vllm --gpu 2xh100 --tensor-parallel-size 4",
        "serve gpt2 --engine vllm --engine-version newest", "serve gpt2 --engine vllm --kv-cache-dtype turboquant_k8v4",
        "serve gpt2 --engine vllm --max-num-seqs 0", "serve gpt2 --engine vllm --env NAME",
        "serve gpt2 --engine vllm --quantization compressed-tensors", "serve gpt2 --engine vllm --quantization nf4",
        "serve gpt2 --engine vllm --max-model-len 1025", "serve gpt2 --engine vllm --engine-version 0.1.7",
        "serve gpt2 --engine vllm --cudagraph-capture-sizes []"}) {
    const auto captured = run(line);
    EXPECT_EQ(captured.status, 2) << line;
    EXPECT_TRUE(captured.out.empty()) << line;
    EXPECT_EQ(std::count(captured.err.begin(), captured.err.end(), '\n'), 1) << captured.err;
  }
  EXPECT_EQ(run("serve meta-llama/Llama-3.1-8B --engine vllm --gpu rtx-3090 --require-fit").status, 3);
}

TEST(ServeVllm, RunsOnCardsThatVllmRunsOn) {
  const std::string question = "serve meta-llama/Llama-3.1-8B --engine vllm --gpu ";
  for (const char* card : {"gtx-1080-ti", "m1-16gb"}) {
    const auto refused = run(question + card);
    EXPECT_EQ(refused.status, 2) << card;
    EXPECT_EQ(refused.err.rfind("ullage: --gpu: ", 0), 0U) << refused.err;
  }
  EXPECT_EQ(run(question + "t4").status, 0);
  const Json other = answer(question + "gaudi-2");
  EXPECT_NE(other["warnings"].dump().find("measured on NVIDIA's cards"), std::string::npos);
}

TEST(ServeVllm, NamesTheNearestWayOfQuantising) {
  EXPECT_EQ(run("serve gpt2 --engine vllm --quantization nf4").err,
            "ullage: --quantization: 'nf4' is no way of quantising of vLLM; did you mean bitsandbytes?\n");
  EXPECT_NE(run("serve gpt2 --engine vllm --quantization gptq_marlim").err.find("gptq_marlin"), std::string::npos);
}

TEST(ServeVllm, ARefusalHasNoHeadroom) {
  const Json said = answer("serve meta-llama/Llama-3.1-8B --engine vllm --gpu rtx-3090");
  EXPECT_EQ(said["fits"], false);
  EXPECT_LT(said["headroom_bytes"].get<std::int64_t>(), 0);
}

TEST(ServeVllm, SaysWhatIsNotSaid) {
  const Json idle = answer("serve gpt2 --engine vllm --max-loras 2 --engine-version 0.4.2");
  EXPECT_NE(idle["warnings"].dump().find("--max-loras does nothing without --enable-lora"), std::string::npos);
  EXPECT_NE(idle["warnings"].dump().find("older than the rules"), std::string::npos);
  const Json card = answer("serve gpt2 --engine vllm --gpu t4 --engine-version 0.8.5");
  EXPECT_NE(card["assumptions"].dump().find("compute capability 8.0"), std::string::npos);
  EXPECT_EQ(card["setup"]["engine_version"], "0.8.5");
}

TEST(ServeVllm, WarnsOfWhatItDoesNotKnow) {
  const Json said = answer("serve gpt2 --engine vllm --gpu 4xh100 --engine-version 0.99 --env HF_TOKEN=x");
  EXPECT_EQ(said["warnings"].size(), 3U);
}

TEST(Engines, ListsRulesWithReleasesAndSources) {
  const Json said = answer("engines");
  ASSERT_EQ(said["engines"].size(), 6U);
  for (const Json& engine : said["engines"]) {
    const bool by_release = engine["name"] == "vllm" || engine["name"] == "sglang";
    EXPECT_GT(engine["rules"].size(), by_release ? 30U : 5U) << engine["name"];
    for (const Json& rule : engine["rules"]) EXPECT_FALSE(rule["source"].get<std::string>().empty());
  }
  EXPECT_EQ(answer("engines graphs-charged")["engines"][0]["rules"][0]["since"], "0.21");
}

}  // namespace
}  // namespace ullage
