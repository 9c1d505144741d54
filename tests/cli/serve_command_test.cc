// `ullage serve` as a person and as a program ask it.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/json_answer.h"

namespace ullage {
namespace {

using testing::answer;
using testing::run;

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

// Two rules of one format, of the checkpoint and of what the card holds, differ by small tables alone.
TEST(ServeCommand, HoldsQuantisedWeightsAsInspectCountsThem) {
  for (const std::string format : {"nf4", "nf4-dq", "int8", "gptq", "awq"}) {
    const Json stored = answer("inspect meta-llama/Llama-3.1-8B --quantization " + format);
    const Json held = answer("serve meta-llama/Llama-3.1-8B --quantization " + format);
    const double bytes = stored["weights"]["bytes"].get<double>();
    EXPECT_NEAR(held["weights_bytes"].get<double>(), bytes, 1e-4 * bytes) << format;
    EXPECT_EQ(held["setup"]["quantization"], format);
  }
}

TEST(ServeCommand, SharesLayersOutOverUnequalCards) {
  const Json said = answer("serve meta-llama/Llama-3.1-8B --gpu rtx-4070,rtx-4090 --device-map sequential");
  EXPECT_EQ(said["device"]["name"], "rtx-4070,rtx-4090");
  EXPECT_EQ(said["device"]["count"], 2);
  EXPECT_EQ(said["setup"]["gpus"], 2);
  EXPECT_EQ(said["setup"]["device_map"], "sequential");
  ASSERT_EQ(said["ranks"].size(), 2U);
  std::int64_t parameters = 0;
  std::int64_t processes = 0;
  std::int64_t least = said["headroom_bytes"];
  for (const Json& rank : said["ranks"]) {
    for (const Json& component : rank["components"]) {
      if (component["name"] == "parameters") parameters += component["bytes"].get<std::int64_t>();
    }
    processes += rank["peak"]["process_bytes"].get<std::int64_t>();
    EXPECT_GE(rank["headroom_bytes"].get<std::int64_t>(), least);
  }
  EXPECT_EQ(parameters, 2 * std::int64_t{8030261248});
  EXPECT_EQ(said["totals"]["process_bytes"], processes);
}

TEST(ServeCommand, SaysWhichCardIsFullAndWhatIsLeftToTheProcessor) {
  const Json said = answer("serve meta-llama/Llama-3.1-70B --gpu 2xrtx-4090");
  EXPECT_EQ(said["fits"], false);
  EXPECT_NE(said["out_of_memory"]["message"].get<std::string>().find("GPU 1 has a total capacity"), std::string::npos);
  EXPECT_NE(said["warnings"].dump().find("modules to the processor"), std::string::npos);
}

TEST(ServeCommand, RefusesFormatsThatCardsOrTheEngineDoNotHave) {
  EXPECT_EQ(
      run("serve 1B --gpu v100-pcie-32gb --quantization int8").err,
      "ullage: --quantization: bitsandbytes multiplies in int8 from compute capability 7.5 on, and Tesla V100 PCIe "
      "32GB has 7.0; use nf4\n");
  for (const std::string method : {"fbgemm_fp8", "torchao", "mxfp4", "int4", "compressed-tensors"})
    EXPECT_EQ(run("serve 1B --quantization " + method).err,
              "ullage: --quantization: " + method + " with transformers is not in this version\n");
  EXPECT_EQ(run("serve 1B --quantization nf5").err,
            "ullage: --quantization: 'nf5' is not one of none, nf4, nf4-dq, fp4, int8, gptq, awq, fp8\n");
}

std::int64_t kept(const Json& said, const char* phase) {
  for (const Json& one : said["phases"]) {
    if (one["name"] == phase) return one["components"]["kv_cache"].get<std::int64_t>();
  }
  return 0;
}

// 22 layers of 4 heads of 64: 256 numbers a token and tensor, each half a byte and 4 bytes for every 64, in blocks of
// 512 bytes; of the 24 tokens behind the prompt none is quantised yet.
TEST(ServeCommand, AQuantisedCacheHoldsTheLastTokensAsTheyAre) {
  const std::string line = "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --seq-len 1000 --new-tokens 25 --cache quantized";
  const Json said = answer(line);
  constexpr std::int64_t kCodes = 1000 * 256 / 2;  // 250 blocks
  constexpr std::int64_t kScales = 8192;           // 1000 x 256 / 64 of two bytes, rounded up
  constexpr std::int64_t kTensors = 2 * 22;
  EXPECT_EQ(kept(said, "after_prefill"), kTensors * (kCodes + 2 * kScales));
  EXPECT_EQ(kept(said, "after_decode"), kTensors * (kCodes + 2 * kScales + 24 * 256 * 2));
  EXPECT_LT(kept(said, "after_decode"), kept(answer(line.substr(0, line.find(" --cache"))), "after_decode"));
}

// What was put in at once ends as what came token by token does.
TEST(ServeCommand, LongAnswersWithAQuantisedCacheEndAlike) {
  const Json said = answer("serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --seq-len 640 --new-tokens 385 --cache quantized");
  constexpr std::int64_t kCodes = 1024 * 256 / 2;
  constexpr std::int64_t kScales = 8192;
  EXPECT_EQ(kept(said, "after_decode"), 2 * 22 * (kCodes + 2 * kScales));
}

TEST(ServeCommand, AnOffloadedCacheLeavesTwoLayersOnTheCard) {
  const std::string line = "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --seq-len 1000 --new-tokens 25";
  const Json here = answer(line);
  const Json away = answer(line + " --cache offloaded");
  EXPECT_EQ(kept(away, "after_decode"), kept(here, "after_decode") / 22);  // the first, for the next token
  EXPECT_LT(away["peak"]["allocated_bytes"], here["peak"]["allocated_bytes"]);
}

TEST(ServeCommand, HoldsFp8WhereTheCardMultipliesIt) {
  const Json stored = answer("inspect Qwen/Qwen3-32B-FP8");
  const Json held = answer("serve Qwen/Qwen3-32B-FP8 --gpu h100");
  EXPECT_EQ(held["setup"]["quantization"], "fp8");
  const double bytes = stored["weights"]["bytes"].get<double>();
  EXPECT_NEAR(held["weights_bytes"].get<double>(), bytes, 1e-3 * bytes);
  const Json older = answer("serve Qwen/Qwen3-32B-FP8 --gpu a100-80gb");
  EXPECT_EQ(older["setup"]["quantization"], "none");
  EXPECT_NE(older["warnings"].dump().find("dequantises"), std::string::npos);
}

TEST(ServeCommand, FlashAttentionNeedsACardAndAFamilyThatHasIt) {
  EXPECT_EQ(run("serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-3090 --attention flash").status, 0);
  for (const char* line :
       {"serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu t4 --dtype fp16 --attention flash",
        "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --dtype fp32 --attention flash",
        "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --cache static --attention flash",
        "serve tiiuae/falcon-7b --attention flash", "serve bigscience/bloom-560m --attention flash"}) {
    const auto refused = run(line);
    EXPECT_EQ(refused.status, 2) << line;
    EXPECT_TRUE(refused.err.starts_with("ullage: --attention: ") || refused.err.starts_with("ullage: --cache: "))
        << refused.err;
  }
}

TEST(ServeCommand, RefusesCachesThatTheLibrariesRefuse) {
  const auto refused = [](const std::string& config) {
    return run({"serve", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "--cache", "quantized", "--cache-config", config}).err;
  };
  EXPECT_EQ(refused(R"({"nbits": 3})"), "ullage: --cache-config: nbits is 3; quanto's cache has 2 or 4\n");
  EXPECT_EQ(refused(R"({"axis_key": 1})"), "ullage: --cache-config: an axis is 1; quanto takes 0 or -1\n");
  EXPECT_EQ(refused(R"({"backend": "hqq", "nbits": 1})"),
            "ullage: --cache-config: hqq's packing of 1 bits is not modelled; use 2, 4 or 8\n");
  EXPECT_EQ(refused(R"({"bits": 4})"),
            "ullage: --cache-config: has no 'bits'; known are backend nbits axis_key axis_value q_group_size "
            "residual_length\n");
  EXPECT_NE(refused(R"({"q_group_size": 7})").find("do not fill groups of 7"), std::string::npos);
  EXPECT_EQ(run({"serve", "1B", "--cache-config", "{}"}).err, "ullage: --cache-config: is for --cache quantized\n");
}

TEST(ServeCommand, RefusesWhatIsNotThereInOneLine) {
  EXPECT_EQ(run("serve Llama-3.1-8B --engine llama.cpp").status, 2);
  EXPECT_NE(run("serve Llama-3.1-8B --engine llama.cpp").err.find("not in this version"), std::string::npos);
  EXPECT_EQ(run("serve resnet50").status, 2);
  EXPECT_EQ(run("serve Llama-3.1-8B --new-tokens 0").status, 2);
  EXPECT_EQ(run("serve Llama-3.1-8B --gpu rtx-4070 --require-fit").status, 3);
}

}  // namespace
}  // namespace ullage
