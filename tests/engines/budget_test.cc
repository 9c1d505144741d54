// Engines that share a card out by one rule, against examples of their documents and logs.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/bytes.h"
#include "engines/budget/account.h"
#include "engines/budget/rules.h"
#include "engines/lmdeploy/pool.h"
#include "engines/mindie/pool.h"
#include "engines/tensorrt_llm/pool.h"
#include "engines/tgi/pool.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::engines::budget {
namespace {

model::Architecture architecture_of(std::string_view name) {
  const auto entry = model::find_model(name);
  EXPECT_TRUE(entry) << name;
  if (!entry) return {};
  return model::build_outline(entry->config, entry->name).value_or(model::Architecture{});
}

std::int64_t gib(double value) { return static_cast<std::int64_t>(value * static_cast<double>(kGiB)); }

Options options_of(Engine engine, Version version) {
  Options out;
  out.engine = engine;
  out.version = version;
  out.dtype = DType::f16;
  out.cache = model::cache_type(DType::f16);
  out.block_size = static_cast<std::int64_t>(rule(out, "block_size", nullptr).value);
  out.fraction = rule(out, "fraction", nullptr).value;
  return out;
}

std::int64_t token_bytes(std::string_view name, const model::CacheType& cache = model::cache_type(DType::f16)) {
  Options options = options_of(Engine::tensorrt_llm, {1, 0, 0});
  options.cache = cache;
  options.input_tokens = options.longest = 64;
  options.prefill_tokens = 64;
  return account(architecture_of(name), options, nullptr, 0, nullptr)->held.token;
}

// --- TensorRT-LLM ----------------------------------------------------------------------------------------------------

struct Log {
  const char* model;
  const char* cache;
  Version version;
  std::int64_t block;
  double gib;           // "Allocated ... GiB for max tokens in paged KV cache"
  std::int64_t tokens;  // "(...)"
};

// https://github.com/NVIDIA/TensorRT-LLM/issues/5306, 1188, 6294: printed gigabytes and tokens of the whole pool.
TEST(TensorRt, PrintsTheTokensOfItsLogs) {
  const Log logs[] = {
      {"Qwen/Qwen2.5-7B-Instruct", "fp16", {0, 20, 0}, 32, 16.10, 301472},
      {"Qwen/Qwen2.5-0.5B", "fp16", {0, 15, 0}, 64, 4.53, 395776},
      {"meta-llama/Llama-3.1-8B-Instruct", "fp8", {1, 0, 0}, 32, 52.51, 860320},
  };
  for (const Log& log : logs) {
    Holdings held;
    held.token = token_bytes(log.model, model::parse_cache_type(log.cache).value());
    EXPECT_NEAR(static_cast<double>(held.token * log.tokens) / static_cast<double>(kGiB), log.gib, 0.005) << log.model;
    Options options = options_of(Engine::tensorrt_llm, log.version);
    EXPECT_EQ(options.block_size, log.block) << log.model;
    // As much free as makes them, and a byte more than nothing.
    options.fraction = 1;
    held.total = held.token * log.tokens;
    EXPECT_EQ(tensorrt_llm::pool(options, held).tokens_printed, log.tokens) << log.model;
  }
}

// Issue 6294: max_tokens of 860,308 becomes 860,320; and 1400: "Allocate 69524783104 bytes for k/v cache. Using 132608
// tokens": 32 layers of 32 heads of 128, keys and values, in 16 bits.
TEST(TensorRt, RoundsTokensUpToBlocks) {
  Options options = options_of(Engine::tensorrt_llm, {1, 0, 0});
  Holdings held;
  held.token = 65536;
  held.total = gib(70);
  options.most_tokens = 860308;
  EXPECT_EQ(tensorrt_llm::pool(options, held).tokens, 860320);
  EXPECT_EQ(token_bytes("meta-llama/Llama-2-7b-hf"), 524288);
  EXPECT_EQ(132608LL * 524288, 69524783104LL);
  Options older = options_of(Engine::tensorrt_llm, {0, 8, 0});
  EXPECT_EQ(older.block_size, 64);
  held = Holdings{};
  held.token = 524288;
  // 0.9 of what was free.
  held.total = static_cast<std::int64_t>(69524783104.0 / 0.9) + 1;
  EXPECT_EQ(tensorrt_llm::pool(older, held).tokens_printed, 132608);
}

// https://github.com/NVIDIA/TensorRT-LLM/issues/224: Llama 2 7B on an A10 with 25 requests of 2048 tokens put in at
// once, 0.95 of what is free: 10,718 tokens.
TEST(TensorRt, LeavesTheLargestStepOut) {
  Options options = options_of(Engine::tensorrt_llm, {0, 5, 0});
  options.fraction = 0.95;
  options.block_size = 16;
  options.max_batch = 25;
  options.input_tokens = 2048;
  options.output_tokens = 4096;
  options.longest = 6144;
  options.prefill_tokens = 25 * 2048;
  const auto card = hardware::find_gpu("a10").value();
  const auto out = account(architecture_of("meta-llama/Llama-2-7b-hf"), options, &card, 0, nullptr);
  ASSERT_TRUE(out) << to_string(out.error());
  // Residual, both products and what they give: 51,200 x (4096 + 3 x 11008) x 2 bytes.
  EXPECT_EQ(out->held.activations, 51200LL * (4096 + 3 * 11008) * 2);
  EXPECT_NEAR(static_cast<double>(out->pool.tokens_printed), 10718, 0.05 * 10718);
}

TEST(TensorRt, WithoutPagesHasRoomForTheLargestBatch) {
  Options options = options_of(Engine::tensorrt_llm, {0, 5, 0});
  options.contiguous = true;
  options.max_batch = 8;
  options.longest = 4096;
  Holdings held;
  held.token = 524288;
  // 512 MiB for each of 32 layers: https://github.com/NVIDIA/TensorRT-LLM/issues/67
  EXPECT_EQ(tensorrt_llm::pool(options, held).bytes, 32 * 512 * kMiB);
}

// --- MindIE ----------------------------------------------------------------------------------------------------------

// The guide's example: Floor[(64 - 3 - 130 / 8 - 2) x 0.8] = 34.
TEST(Mindie, ComputesTheGuidesExample) {
  Options options = options_of(Engine::mindie, {1, 0, 0});
  Holdings held;
  held.total = gib(64);
  held.weights = gib(130.0 / 8);
  held.token = 327680;
  EXPECT_EQ(mindie::pool(options, held).bytes, 34 * kGiB);
  // Its Total Block Num: Floor[34 GiB / (80 layers x 128 tokens x 8 heads x 128 x 2 bytes x 2)].
  EXPECT_EQ(mindie::pool(options, held).blocks, 34 * kGiB / (80LL * 128 * 8 * 128 * 2 * 2));
}

// Examples of its users: 40 GiB at 57,344 bytes a token, requests of 1024 + 1024; 34 GiB at 131,072, of 60 + 512.
TEST(Mindie, CountsBlocksOfInputAndOutputApart) {
  const struct {
    std::int64_t gigabytes;
    std::int64_t token;
    std::int64_t input;
    std::int64_t output;
    std::int64_t blocks;
    std::int64_t requests;
  } rows[] = {{40, 57344, 1024, 1024, 5851, 365}, {34, 131072, 60, 512, 2176, 435}};
  for (const auto& row : rows) {
    Options options = options_of(Engine::mindie, {2, 0, 0});
    options.pool_bytes = row.gigabytes * kGiB;
    Holdings held;
    held.token = row.token;
    EXPECT_EQ(mindie::pool(options, held).blocks, row.blocks);
    EXPECT_EQ(row.blocks / mindie::request_blocks(options, row.input, row.output), row.requests);
  }
}

// --- LMDeploy --------------------------------------------------------------------------------------------------------

// docs/en/inference/turbomind_config.md: half of 80 GB are 40 to 0.2.1; behind a 13B model (80 - 26) x 0.8 = 43.2; a
// block of 128 tokens of Llama 2 7B is 64 MB.
TEST(Lmdeploy, SharesAsItsGuideDoes) {
  Options options = options_of(Engine::lmdeploy, {0, 2, 1});
  Holdings held;
  held.total = gib(80);
  held.weights = gib(26);
  held.token = 1;
  EXPECT_EQ(lmdeploy::pool(options, held).bytes, gib(40));
  options = options_of(Engine::lmdeploy, {0, 9, 2});
  EXPECT_NEAR(static_cast<double>(lmdeploy::pool(options, held).bytes), 43.2 * static_cast<double>(kGiB), 1);
  EXPECT_EQ(128 * token_bytes("meta-llama/Llama-2-7b-hf"), 64 * kMiB);
  options.blocks = 48;
  held.token = 524288;
  EXPECT_EQ(lmdeploy::pool(options, held).blocks, 48);
}

// lmdeploy/pytorch/engine/executor/base.py, by hand: (8192 + 2 x 128) x 32,000 x 2 bytes of buffers first; with room
// for fewer than sixteen blocks half as many tokens, and so on.
TEST(Lmdeploy, SetsBuffersAsideInItsOtherEngine) {
  Options options = options_of(Engine::lmdeploy, {0, 16, 0});
  options.pytorch = true;
  options.prefill_tokens = 8192;
  options.max_batch = 128;
  Holdings held;
  held.total = gib(20);
  held.vocab = 32000;
  held.token = 524288;
  const Pool roomy = lmdeploy::pool(options, held);
  EXPECT_EQ(roomy.reserved, 8448LL * 32000 * 2);
  EXPECT_EQ(roomy.bytes, static_cast<std::int64_t>(static_cast<double>(held.total - roomy.reserved) * 0.8));
  EXPECT_EQ(roomy.blocks, roomy.bytes / (64 * 524288));
  // 1100 MiB less 515.6 at 0.8 are fourteen blocks of 32 MiB; less 265.6, which 4096 + 256 tokens take, twenty.
  held.total = 1100 * kMiB;
  EXPECT_EQ(lmdeploy::pool(options, held).reserved, 4352LL * 32000 * 2);
  EXPECT_EQ(lmdeploy::pool(options, held).blocks, 20);
}

// --- TGI -------------------------------------------------------------------------------------------------------------

// flash_causal_lm.py (warmup) of 1.4 and of 3.3, by hand for 20 GiB with 14 of weights, a prefill of 4096 tokens that
// takes 1 GiB, and 128 KiB a token (0.5 GiB of them): 4.5 GiB are free.
TEST(Tgi, TakesRoomOfWhatIsFreeOrOfTheCard) {
  Holdings held;
  held.total = gib(20);
  held.weights = gib(14);
  held.activations = gib(1);
  held.token = 128 * kKiB;
  Options options = options_of(Engine::tgi, {1, 4, 5});
  options.prefill_tokens = 4096;
  EXPECT_EQ(options.block_size, 16);
  // 4.5 x 0.95 GiB in blocks of 2 MiB, and the prefill's 256.
  EXPECT_EQ(tgi::pool(options, held).blocks, static_cast<std::int64_t>(4.5 * 0.95 * 512) + 256);
  options = options_of(Engine::tgi, {3, 3, 7});
  options.prefill_tokens = 4096;
  EXPECT_EQ(options.block_size, 1);
  // 4.5 - 0.1 x 20 GiB, and the prefill's 4096.
  EXPECT_NEAR(static_cast<double>(tgi::pool(options, held).blocks), 2.5 * 8192 + 4096, 1);
  options.fraction = 0.5;  // 4.5 - 0.55 x 20 is nothing
  EXPECT_EQ(tgi::pool(options, held).blocks, 4096);
}

// https://github.com/huggingface/text-generation-inference/issues/2748: "KV-cache blocks: 123449, size: 1" is the same
// as MAX_BATCH_TOTAL_TOKENS.
TEST(Tgi, CountsABlockAToken) {
  Options options = options_of(Engine::tgi, {2, 4, 0});
  options.prefill_tokens = 4096;
  options.most_tokens = 123449;
  Holdings held;
  held.total = gib(80);
  held.token = 128 * kKiB;
  const Pool out = tgi::pool(options, held);
  EXPECT_EQ(out.blocks, 123449);
  EXPECT_EQ(out.tokens_printed, 123449);
}

// docs/source/conceptual/chunking.md: an L4 carries 30,000 tokens of Llama 3.1 8B, with room for more on an empty card;
// and logits of 100,000 tokens are 25.6 GB, which releases from 3.0 on no longer make.
TEST(Tgi, CarriesOnAnL4WhatItsGuideSays) {
  Options options = options_of(Engine::tgi, {3, 0, 0});
  options.dtype = DType::bf16;
  options.prefill_tokens = 4096;
  options.longest = 131072;
  options.input_tokens = 131071;
  options.output_tokens = 1;
  const auto card = hardware::find_gpu("l4").value();
  const auto out = account(architecture_of("meta-llama/Llama-3.1-8B-Instruct"), options, &card, 0, nullptr);
  ASSERT_TRUE(out);
  EXPECT_GE(out->pool.tokens, 30000);
  EXPECT_LE(out->pool.tokens, 50000);
  EXPECT_NEAR(100000.0 * 128256 * 2, 25.6e9, 0.1e9);
  Options older = options;
  older.version = {2, 0, 0};
  const auto before = account(architecture_of("meta-llama/Llama-3.1-8B-Instruct"), older, &card, 0, nullptr);
  EXPECT_EQ(before->held.activations - out->held.activations, 4096LL * 128256 * 4);
}

// --- all of them -----------------------------------------------------------------------------------------------------

TEST(Account, RefusesWhatDoesNotFit) {
  const auto card = hardware::find_gpu("l4").value();
  for (const Engine engine : {Engine::tensorrt_llm, Engine::lmdeploy, Engine::tgi}) {
    Options options = options_of(engine, newest(engine));
    options.longest = 4096;
    options.input_tokens = 4095;
    options.output_tokens = 1;
    options.prefill_tokens = 4096;
    options.max_batch = 8;
    const auto large = account(architecture_of("meta-llama/Llama-3.1-70B"), options, &card, 0, nullptr);
    ASSERT_TRUE(large);
    EXPECT_EQ(large->outcome, Outcome::weights_too_large) << name_of(engine);
    EXPECT_GT(large->short_bytes, 0);
    const auto small = account(architecture_of("meta-llama/Llama-3.1-8B"), options, &card, 0, nullptr);
    ASSERT_TRUE(small);
    EXPECT_EQ(small->outcome, Outcome::starts) << name_of(engine);
    EXPECT_LE(small->process().low, small->process().middle);
    EXPECT_LE(small->process().middle, small->process().high);
    options.fraction = 1e-6;              // less than a token
    if (engine == Engine::tgi) continue;  // what the prefill filled is there
    EXPECT_EQ(account(architecture_of("meta-llama/Llama-3.1-8B"), options, &card, 0, nullptr)->outcome,
              Outcome::no_room);
  }
}

TEST(Account, KnowsNoStates) {
  const Options options = options_of(Engine::tgi, {3, 3, 7});
  EXPECT_EQ(account(architecture_of("ibm-ai-platform/Bamba-9B-v1"), options, nullptr, 0, nullptr).error().code,
            ErrorCode::unsupported);
}

TEST(Rules, HaveNamesARangeAndASource) {
  std::set<std::string> ids;
  for (const Engine engine : kEngines) {
    const std::vector<Rule> all = rules(engine);
    EXPECT_GT(all.size(), 10U) << name_of(engine);
    for (const Rule& one : all) {
      EXPECT_TRUE(ids.insert(one.id).second) << one.id;
      EXPECT_EQ(one.low, one.high) << one.id;
      for (const Version version : {oldest(engine), newest(engine)}) {
        EXPECT_FALSE(rule(engine, version, one.item, nullptr).id.empty()) << one.item;
      }
    }
  }
}

// By release, each as its source has it.
TEST(Rules, HoldByRelease) {
  const struct {
    Engine engine;
    Version version;
    const char* id;
    const char* item;
    double value;
  } rows[] = {
      {Engine::tensorrt_llm, {0, 5, 0}, "trt-fraction-2023", "fraction", 0.85},
      {Engine::tensorrt_llm, {0, 8, 0}, "trt-fraction", "fraction", 0.9},
      {Engine::tensorrt_llm, {0, 17, 0}, "trt-block", "block_size", 64},
      {Engine::tensorrt_llm, {1, 0, 0}, "trt-block-0.20", "block_size", 32},
      {Engine::tensorrt_llm, {0, 7, 0}, "trt-contiguous", "paged", 0},
      {Engine::tensorrt_llm, {0, 8, 0}, "trt-paged", "paged", 1},
      {Engine::tensorrt_llm, {0, 10, 0}, "trt-batch-first", "max_batch", 8},
      {Engine::tensorrt_llm, {0, 12, 0}, "trt-batch-0.11", "max_batch", 256},
      {Engine::tensorrt_llm, {1, 0, 0}, "trt-batch", "max_batch", 2048},
      {Engine::tensorrt_llm, {0, 5, 0}, "trt-input", "max_input", 2048},
      {Engine::tensorrt_llm, {0, 9, 0}, "trt-input-0.8", "max_input", 1024},
      {Engine::tensorrt_llm, {0, 9, 0}, "trt-output", "max_output", 1024},
      {Engine::tensorrt_llm, {0, 9, 0}, "trt-prefill-first", "prefill_tokens", 0},
      {Engine::tensorrt_llm, {1, 0, 0}, "trt-prefill", "prefill_tokens", 8192},
      {Engine::tensorrt_llm, {1, 0, 0}, "trt-hidden", "forward_hidden_copies", 1},
      {Engine::tensorrt_llm, {1, 0, 0}, "trt-logits", "prefill_logit_bytes", 0},
      {Engine::mindie, {1, 0, 0}, "mindie-fraction", "fraction", 0.8},
      {Engine::mindie, {1, 0, 0}, "mindie-idle", "idle_gib", 3},
      {Engine::mindie, {1, 0, 0}, "mindie-sampling", "sampling_gib", 2},
      {Engine::mindie, {2, 1, 0}, "mindie-block", "block_size", 128},
      {Engine::mindie, {2, 1, 0}, "mindie-longest", "longest", 2560},
      {Engine::mindie, {2, 1, 0}, "mindie-input", "max_input", 2048},
      {Engine::mindie, {2, 1, 0}, "mindie-output", "max_output", 512},
      {Engine::mindie, {2, 1, 0}, "mindie-prefill-batch", "prefill_batch", 50},
      {Engine::mindie, {2, 1, 0}, "mindie-prefill", "prefill_tokens", 8192},
      {Engine::mindie, {2, 1, 0}, "mindie-batch", "max_batch", 200},
      {Engine::mindie, {2, 1, 0}, "mindie-hidden", "forward_hidden_copies", 3},
      {Engine::mindie, {2, 1, 0}, "mindie-logits", "prefill_logit_bytes", 0},
      {Engine::lmdeploy, {0, 2, 1}, "lmdeploy-fraction-0.2", "fraction", 0.5},
      {Engine::lmdeploy, {0, 2, 2}, "lmdeploy-fraction", "fraction", 0.8},
      {Engine::lmdeploy, {0, 9, 2}, "lmdeploy-block", "block_size", 64},
      {Engine::lmdeploy, {0, 4, 0}, "lmdeploy-batch", "max_batch", 128},
      {Engine::lmdeploy, {0, 2, 0}, "lmdeploy-prefill-0.2", "prefill_tokens", 8192},
      {Engine::lmdeploy, {0, 9, 2}, "lmdeploy-prefill", "prefill_tokens", 8192},
      {Engine::lmdeploy, {0, 2, 2}, "lmdeploy-pytorch-prefill-0.2", "pytorch_prefill_tokens", 16384},
      {Engine::lmdeploy, {0, 9, 2}, "lmdeploy-pytorch-prefill-0.4", "pytorch_prefill_tokens", 4096},
      {Engine::lmdeploy, {0, 16, 0}, "lmdeploy-pytorch-prefill", "pytorch_prefill_tokens", 8192},
      {Engine::lmdeploy, {0, 16, 0}, "lmdeploy-hidden", "forward_hidden_copies", 3},
      {Engine::lmdeploy, {0, 16, 0}, "lmdeploy-logits", "prefill_logit_bytes", 0},
      {Engine::tgi, {1, 0, 0}, "tgi-fraction", "fraction", 1},
      {Engine::tgi, {2, 3, 0}, "tgi-room", "wiggle_room", 0.95},
      {Engine::tgi, {2, 4, 0}, "tgi-room-2.4", "wiggle_room", 0.9},
      {Engine::tgi, {3, 0, 1}, "tgi-room-3.0", "wiggle_room", 0.95},
      {Engine::tgi, {3, 2, 3}, "tgi-room-3.1", "wiggle_room", 0.93},
      {Engine::tgi, {3, 3, 0}, "tgi-room-3.3", "wiggle_room", 0.9},
      {Engine::tgi, {2, 2, 0}, "tgi-block", "block_size", 16},
      {Engine::tgi, {2, 3, 0}, "tgi-block-2.3", "block_size", 1},
      {Engine::tgi, {3, 3, 7}, "tgi-prefill", "prefill_tokens", 4096},
      {Engine::tgi, {1, 4, 5}, "tgi-longest", "longest", 2048},
      {Engine::tgi, {2, 0, 0}, "tgi-longest-2.0", "longest", 0},
      {Engine::tgi, {1, 4, 5}, "tgi-input", "max_input", 1024},
      {Engine::tgi, {3, 3, 7}, "tgi-hidden", "forward_hidden_copies", 3},
      {Engine::tgi, {2, 4, 0}, "tgi-logits", "prefill_logit_bytes", 4},
      {Engine::tgi, {3, 0, 0}, "tgi-logits-3.0", "prefill_logit_bytes", 0},
  };
  std::set<std::string> named{"lmdeploy-batch-h100", "lmdeploy-batch-a100"};
  for (const auto& row : rows) {
    const Rule found = rule(row.engine, row.version, row.item, nullptr);
    EXPECT_EQ(found.id, row.id);
    EXPECT_EQ(found.value, row.value) << row.id;
    named.insert(row.id);
  }
  // lmdeploy/utils.py (get_max_batch_size).
  const auto h100 = hardware::find_gpu("h100").value();
  const auto a100 = hardware::find_gpu("a100-sxm-80gb").value();
  EXPECT_EQ(rule(Engine::lmdeploy, {0, 9, 2}, "max_batch", &h100).id, "lmdeploy-batch-h100");
  EXPECT_EQ(rule(Engine::lmdeploy, {0, 9, 2}, "max_batch", &a100).id, "lmdeploy-batch-a100");
  for (const Engine engine : kEngines) {
    for (const Rule& one : rules(engine)) EXPECT_EQ(named.count(one.id), 1U) << one.id;
  }
}

}  // namespace
}  // namespace ullage::engines::budget
