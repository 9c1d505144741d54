// vLLM's pool of blocks against start-up logs that were published.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/bytes.h"
#include "data/engines_vllm.h"
#include "engines/vllm/budget.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/words.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::engines::vllm {
namespace {

model::Architecture architecture_of(std::string_view name) {
  const auto built = model::find_model(name).and_then(
      [](const model::CatalogueEntry& entry) { return model::build_architecture(entry.config, entry.name); });
  EXPECT_TRUE(built) << name << ": " << (built ? "" : to_string(built.error()));
  return built.value_or(model::Architecture{});
}

// A log's figures: the pool in GiB with two digits, and what it was cut into.
struct Log {
  const char* model;
  Version version;
  const char* dtype;
  const char* kv_dtype;
  std::int64_t tp;
  std::int64_t max_model_len;
  std::int64_t max_num_batched_tokens;
  double pool_gib;
  std::int64_t blocks;
  double max_concurrency;
};

Options options_of(const Log& log) {
  Options out;
  out.version = log.version;
  out.dtype = parse_dtype(log.dtype).value();
  out.kv_cache_dtype = model::parse_cache_type(log.kv_dtype).value();
  out.tensor_parallel_size = log.tp;
  out.max_model_len = log.max_model_len;
  out.max_num_batched_tokens = log.max_num_batched_tokens;
  return out;
}

class Pool : public ::testing::TestWithParam<Log> {};

TEST_P(Pool, IsCutAsTheLogSays) {
  const Log& log = GetParam();
  const model::Architecture architecture = architecture_of(log.model);
  const Options options = options_of(log);
  const auto plan = plan_cache(architecture, options, 0, architecture.layer_count());
  ASSERT_TRUE(plan) << to_string(plan.error());
  // The pool was printed to a hundredth of a GiB: so many blocks fit into what it may have been.
  const auto printed = log.pool_gib * static_cast<double>(kGiB);
  const double half_digit = 0.005 * static_cast<double>(kGiB);
  const double taken = static_cast<double>(log.blocks) * static_cast<double>(plan->block_bytes);
  EXPECT_LE(taken, printed + half_digit) << plan->block_bytes;
  EXPECT_GE(taken + static_cast<double>(plan->block_bytes), printed - half_digit) << plan->block_bytes;
  const Capacity held = capacity_of_blocks(*plan, options, log.blocks);
  EXPECT_NEAR(held.max_concurrency, log.max_concurrency, 0.00501);
}

constexpr Version k019{0, 19, 0};

constexpr Log kLogs[] = {
    {"deepseek-ai/DeepSeek-V2-Lite-Chat", k019, "bf16", "bf16", 1, 8192, 8192, 43.61, 94097, 183.78},
    {"google/gemma-2-9b-it", k019, "bf16", "bf16", 1, 8192, 8192, 54.12, 21110, 20.6},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "bf16", "fp8", 1, 8192, 8192, 58.11, 59502, 116.21},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "bf16", "bf16", 1, 8192, 8192, 58.11, 29750, 58.11},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "fp32", "fp32", 1, 8192, 8192, 42.8, 10956, 21.4},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "bf16", "bf16", 2, 8192, 8192, 63.76, 65293, 127.53},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "bf16", "bf16", 4, 8192, 8192, 67.44, 138112, 269.75},
    {"meta-llama/Llama-3.1-8B-Instruct", k019, "bf16", "bf16", 1, 32768, 8192, 58.11, 29751, 14.53},
    {"microsoft/phi-2", k019, "fp16", "fp16", 1, 2048, 8192, 69.0, 14132, 110.41},
    {"meta-llama/Llama-3.3-70B-Instruct", k019, "bf16", "bf16", 2, 8192, 8192, 37.28, 15269, 29.82},
    {"meta-llama/Llama-3.3-70B-Instruct", k019, "bf16", "bf16", 4, 8192, 8192, 54.09, 44312, 86.55},
    {"Qwen/Qwen2.5-72B", k019, "bf16", "bf16", 2, 8192, 8192, 3.02, 1236, 2.41},
    {"openai/gpt-oss-20b", k019, "bf16", "bf16", 2, 8192, 8192, 59.32, 323972, 316.07},
    {"Qwen/Qwen1.5-MoE-A2.7B", k019, "bf16", "bf16", 1, 8192, 8192, 45.83, 15644, 30.55},
    {"Qwen/Qwen3-8B", k019, "bf16", "bf16", 1, 8192, 8192, 57.5, 26168, 51.11},
    {"Qwen/Qwen3-14B", {0, 15, 0}, "bf16", "bf16", 1, 8192, 8192, 41.94, 17178, 33.55},
    {"google/gemma-3-27b-it", k019, "bf16", "bf16", 1, 8192, 8192, 19.53, 15997, 4.46},
    {"google/gemma-3-12b-it", k019, "bf16", "bf16", 1, 8192, 8192, 47.72, 48867, 15.88},
    {"google/gemma-3-4b-it", k019, "bf16", "bf16", 1, 8192, 8192, 62.51, 204817, 57.05},
    // V0: as many tokens as blocks hold.
    {"meta-llama/Llama-3.1-8B-Instruct", {0, 6, 4}, "bf16", "bf16", 1, 20000, 20000, 3.81, 1952, 1.56},
    {"meta-llama/Llama-3.1-8B-Instruct", {0, 6, 4}, "bf16", "bf16", 1, 29000, 29000, 2.89, 1478, 0.82},
};
INSTANTIATE_TEST_SUITE_P(Logs, Pool, ::testing::ValuesIn(kLogs));

TEST(Stages, GiveWhatDoesNotDivideToThoseBeforeTheLast) {
  const auto stages = pipeline_stages(62, 4);
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].last, 15);
  EXPECT_EQ(stages[1].last, 31);
  EXPECT_EQ(stages[2].last, 47);
  EXPECT_EQ(stages[3].last, 62);
  EXPECT_TRUE(stages[0].embeds);
  EXPECT_FALSE(stages[0].heads);
  EXPECT_TRUE(stages[3].heads);
}

TEST(Graphs, AreCapturedForTheSizesOfTheRelease) {
  Options options;
  options.version = k019;
  options.max_num_seqs = 1024;
  options.max_num_batched_tokens = 8192;
  EXPECT_EQ(captured_graphs(options), 2 * 51);
  options.largest_capture = 1024;  // gpt-oss
  EXPECT_EQ(captured_graphs(options), 2 * 83);
  options.largest_capture = 512;
  options.version = {0, 9, 0};
  EXPECT_EQ(captured_graphs(options), 67);
  options.version = {0, 6, 4};
  options.max_num_seqs = 256;
  EXPECT_EQ(captured_graphs(options), 35);
  options.cudagraph_capture_sizes = {1, 2, 4};
  EXPECT_EQ(captured_graphs(options), 3);
  options.enforce_eager = true;
  EXPECT_EQ(captured_graphs(options), 0);
}

TEST(Start, SharesAnH100OutAsItsLogSays) {
  // vLLM 0.19.0, Llama 3.1 8B: 79.19 GiB x 0.95; 14.99 of weights, 1.89 of activations, 0.25 besides, 58.11 of cache.
  auto card = hardware::find_gpu("h100-sxm-80gb");
  ASSERT_TRUE(card);
  hardware::set_usable(*card, static_cast<std::int64_t>(79.19 * static_cast<double>(kGiB)));
  Options options;
  options.version = k019;
  options.kv_cache_dtype = model::cache_type(DType::bf16);
  options.gpu_memory_utilization = 0.95;
  options.max_model_len = 8192;
  options.max_num_batched_tokens = 8192;
  options.max_num_seqs = 1024;
  const auto budget = start(architecture_of("meta-llama/Llama-3.1-8B"), options, &*card, 0, nullptr);
  ASSERT_TRUE(budget) << to_string(budget.error());
  const double pool = static_cast<double>(budget->middle.pool_bytes) / static_cast<double>(kGiB);
  EXPECT_NEAR(pool, 58.11, 0.03);
  EXPECT_NEAR(static_cast<double>(budget->tightest().peak.bytes()) / static_cast<double>(kGiB), 1.89, 0.02);
  EXPECT_EQ(budget->middle.outcome, Outcome::starts);
  EXPECT_LE(budget->process().low, budget->process().middle);
  EXPECT_LE(budget->process().middle, budget->process().high);
  EXPECT_TRUE(refusal(*budget, options, 0).empty());
  ASSERT_EQ(log_lines(*budget, options).size(), 2U);
  // The log's own line is "Maximum concurrency for 8,192 tokens per request: 58.11x"; the pool may differ in a digit.
  EXPECT_EQ(log_lines(*budget, options)[1].substr(0, 51), "Maximum concurrency for 8,192 tokens per request: 5");
}

TEST(Start, RefusesWhatCannotHoldOneRequest) {
  auto card = hardware::find_gpu("rtx-3090");
  ASSERT_TRUE(card);
  hardware::set_usable(*card, static_cast<std::int64_t>(23.58 * static_cast<double>(kGiB)));
  Options options;
  options.version = {0, 6, 4};
  options.kv_cache_dtype = model::cache_type(DType::bf16);
  options.max_model_len = options.max_num_batched_tokens = 29000;
  const auto budget = start(architecture_of("meta-llama/Llama-3.1-8B"), options, &*card, 0, nullptr);
  ASSERT_TRUE(budget) << to_string(budget.error());
  EXPECT_EQ(budget->middle.outcome, Outcome::too_few_blocks);
  EXPECT_EQ(refusal(*budget, options, 0).substr(0, 48), "The model's max seq len (29000) is larger than t");
}

TEST(Rules, HaveNamesOfTheirOwnARangeAndASource) {
  const auto rules = parse_rules(data::engines_vllm());
  ASSERT_TRUE(rules) << to_string(rules.error());
  std::set<std::string> ids;
  for (const Rule& rule : *rules) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_LE(rule.low, rule.value) << rule.id;
    EXPECT_LE(rule.value, rule.high) << rule.id;
    const bool ranged = rule.kind == RuleKind::measured_fit || rule.kind == RuleKind::guess;
    EXPECT_EQ(rule.low < rule.high, ranged) << rule.id;
  }
}

TEST(Rules, SayEachItemForAnySurroundings) {
  const auto rules = parse_rules(data::engines_vllm());
  ASSERT_TRUE(rules);
  std::vector<hardware::Gpu> cards;
  for (const char* name : {"h100-sxm-80gb", "a100-sxm-80gb", "rtx-4060", "mi300x"}) {
    cards.push_back(hardware::find_gpu(name).value());
  }
  for (const Rule& named : *rules) {
    for (const Version version : {Version{0, 5, 4}, Version{0, 7, 0}, Version{0, 8, 0}, Version{0, 10, 0}, kNewest}) {
      for (const hardware::Gpu& card : cards) {
        const Surroundings around{version, &card, 2, 2};
        EXPECT_TRUE(parse_rule(data::engines_vllm(), named.item, around)) << named.item << " " << card.id;
      }
      EXPECT_TRUE(parse_rule(data::engines_vllm(), named.item, {version, nullptr, 1, 1})) << named.item;
    }
  }
}

TEST(Rules, AreRefusedWhereTheyLackSomething) {
  const Surroundings around;
  EXPECT_FALSE(parse_rule(R"({"id":"a","item":"x","source":"s"})", "x", around));
  EXPECT_FALSE(parse_rule(R"({"id":"a","item":"x","value":1,"kind":"hearsay","source":"s"})", "x", around));
  EXPECT_FALSE(parse_rule(R"({"id":"a","item":"x","value":1,"since":"new","source":"s"})", "x", around));
  EXPECT_FALSE(parse_rule(R"({"id":"a","item":"y","value":1,"source":"s"})", "x", around));
}

TEST(Version, IsReadFromItsNumbers) {
  EXPECT_EQ(parse_version("0.19.0", "x"), (Version{0, 19, 0}));
  EXPECT_EQ(parse_version("v0.7", "x"), (Version{0, 7, 0}));
  EXPECT_EQ(parse_version("0.23.1rc1", "x"), (Version{0, 23, 1}));
  for (const char* text : {"", "1", "x", "v", "-1.2", ".5", "0.-1"}) EXPECT_FALSE(parse_version(text, "x")) << text;
}

}  // namespace
}  // namespace ullage::engines::vllm
