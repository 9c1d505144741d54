// SGLang's pools against start-up logs that were published.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/bytes.h"
#include "engines/outlined_model.h"
#include "engines/sglang/budget.h"
#include "engines/sglang/graphs.h"
#include "engines/sglang/words.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::engines::sglang {
namespace {

using ullage::testing::outlined;
using ullage::testing::OutlinedModel;

std::int64_t in_bytes(double gib) { return static_cast<std::int64_t>(gib * static_cast<double>(kGiB)); }
double in_gib(std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

Options options_of(Version version, std::int64_t tp) {
  Options out;
  out.version = version;
  out.tp = tp;
  out.kv_cache_dtype = model::cache_type(DType::bf16);
  out.context_length = 40960;
  return out;
}

// What a log tells: free memory before and after the weights, in GiB to a hundredth, and the pool.
struct Log {
  const char* model;
  Version version;
  std::int64_t tp;
  double before;
  double after;
  double fraction;
  std::int64_t page;
  std::int64_t tokens;
  double keys;  // GiB of the pool's halves; 0: not told
  double values;
};

// The rest is after - before x (1 - fraction); tokens are the rest over the bytes of one in all layers.
constexpr Log kLogs[] = {
    // One card of 48 GB: https://github.com/xorbitsai/inference/issues/3481. 19.67 - 47.24 x 0.12 = 14.00 GiB over
    // 40 layers x 8 heads x 128 x 2 x 2 bytes = 163,840.
    {"Qwen/Qwen3-14B", {0, 4, 6}, 1, 47.24, 19.67, 0.88, 1, 91749, 7.00, 7.00},
    // One H200 and a model that sees: 0.88 x 0.95: https://github.com/sgl-project/sglang/pull/4826. 131.08 - 139.21 x
    // 0.164 = 108.25 GiB over 34 layers x 4 heads x 256 x 4 = 139,264.
    {"google/gemma-3-4b-it", {0, 4, 4}, 1, 139.21, 131.08, 0.836, 1, 834615, 54.12, 54.12},
    // SGLang's own documentation, a B300 in May 2026: 260.48 - 275.76 x 0.094 = 234.56 GiB over 36 layers x 8 heads x
    // 128 x 4 = 147,456, in pages of 64.
    {"Qwen/Qwen3-8B", {0, 5, 12}, 1, 275.76, 260.48, 0.906, 64, 1707904, 0, 0},
};

class SglangPool : public ::testing::TestWithParam<Log> {};

TEST_P(SglangPool, HoldsWhatTheLogSays) {
  const Log& log = GetParam();
  const OutlinedModel model = outlined(log.model);
  Options options = options_of(log.version, log.tp);
  options.page_size = log.page;
  const std::int64_t towers = model.architecture.encoder_layers;
  const auto plan = plan_pools(model.architecture, options, towers, model.architecture.layer_count());
  ASSERT_TRUE(plan) << to_string(plan.error());
  const hardware::Gpu card;
  const PoolSizes sizes = size_pools(*plan, options, &card, in_bytes(log.after - log.before * (1 - log.fraction)));
  // Two figures of a log are known to half a hundredth of a GiB each.
  const double known_to = 0.01 * static_cast<double>(kGiB) / static_cast<double>(plan->bytes_per_token());
  EXPECT_NEAR(static_cast<double>(sizes.tokens), static_cast<double>(log.tokens),
              known_to + static_cast<double>(log.page));
  EXPECT_EQ(sizes.tokens % log.page, 0);
  if (log.keys == 0) return;
  const PoolBytes pools = pool_bytes(*plan, options, pools_of_tokens(*plan, options, sizes, log.tokens), {});
  EXPECT_NEAR(in_gib(pools.keys), log.keys, 0.0051);
  EXPECT_NEAR(in_gib(pools.values), log.values, 0.0051);
}
INSTANTIATE_TEST_SUITE_P(Logs, SglangPool, ::testing::ValuesIn(kLogs));

// https://github.com/sgl-project/sglang/pull/18039, before it and after: 9 layers of one head of keys of 192 and values
// of 128, 39 with windows of two heads, on each of four ranks. Before, as if all 48 layers were like the first, and the
// 39 once more: 48 x 640 + 39 x 1,280 = 80,640 bytes; after, 9 x 640 + 0.8 x 39 x 1,280 = 45,696.
TEST(SglangWindows, AreSplitAsTheReleaseDoes) {
  const OutlinedModel model = outlined("XiaomiMiMo/MiMo-V2-Flash");
  Options options = options_of({0, 5, 8}, 4);
  options.window_pool = true;
  options.page_size = 64;
  const hardware::Gpu card;
  const auto before = plan_pools(model.architecture, options, 0, model.architecture.layer_count());
  ASSERT_TRUE(before) << to_string(before.error());
  // 375,360 tokens as the log has them: so much was left that 375,360 x 40.2 / 48 tokens of 80,640 bytes fitted.
  const std::int64_t rest = std::int64_t{314'368} * 80'640;
  const PoolSizes old = size_pools(*before, options, &card, rest);
  EXPECT_EQ(old.tokens, 375360);
  EXPECT_EQ(old.window_tokens, 300288);
  const PoolBytes pools = pool_bytes(*before, options, old, {});
  EXPECT_NEAR(in_gib(pools.window_keys), 8.38, 0.0051);
  EXPECT_NEAR(in_gib(pools.window_values), 5.59, 0.0051);

  options.version = {0, 5, 9};
  const auto after = plan_pools(model.architecture, options, 0, model.architecture.layer_count());
  ASSERT_TRUE(after);
  const PoolSizes now = size_pools(*after, options, &card, rest);
  EXPECT_EQ(now.tokens, rest / 45'696 / 64 * 64);
  EXPECT_EQ(now.window_tokens, now.tokens * 8 / 10 / 64 * 64);
}

// https://github.com/vllm-project/vllm/issues/21348: "#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB", 94 layers of
// one head of 128 on each of four ranks.
TEST(SglangSizes, AreThoseThatLogsPrint) {
  const OutlinedModel model = outlined("Qwen/Qwen3-235B-A22B-FP8");
  const Options options = options_of({0, 4, 9}, 4);
  const auto plan = plan_pools(model.architecture, options, 0, 94);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bytes_per_token(), 94 * 128 * 4);
  const PoolBytes pools = pool_bytes(*plan, options, pools_of_tokens(*plan, options, {}, 367404), {});
  EXPECT_NEAR(in_gib(pools.keys), 8.23, 0.0051);
}

// The same log's whole start: four H100 with 0.93 of what is free. Nothing of it went into a rule.
TEST(SglangStart, HoldsTheTokensOfFourH100) {
  const OutlinedModel model = outlined("Qwen/Qwen3-235B-A22B-FP8");
  Flags flags;
  flags.engine_version = "0.4.9";
  flags.tp = 4;
  flags.mem_fraction_static = 0.93;
  const auto card = hardware::find_gpu("h100-sxm-80gb").value();
  const auto quantisation = model::read_quantisation(JsonObject(model.config["quantization_config"], "config"));
  ASSERT_TRUE(quantisation);
  const auto resolved = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(resolved) << to_string(resolved.error());
  const auto budget = start(model.architecture, resolved->options, &card, 0, &*quantisation);
  ASSERT_TRUE(budget) << to_string(budget.error());
  EXPECT_NEAR(static_cast<double>(budget->middle.at().sizes.tokens), 367404, 0.06 * 367404);
  EXPECT_LE(budget->high.at().sizes.tokens, 367404);
  EXPECT_GE(budget->low.at().sizes.tokens, 367404);
}

// https://github.com/sgl-project/sglang/pull/11716: eight H200, 2,795,207 tokens of 80 layers of one head of 128 (30
// files of weights), 52 graphs. What its context takes is a rule made of the same log.
TEST(SglangStart, HoldsTheTokensOfEightH200) {
  const OutlinedModel model = outlined("meta-llama/Llama-3.1-70B-Instruct");
  Flags flags;
  flags.engine_version = "0.5.3";
  flags.tp = 8;
  const auto card = hardware::find_gpu("h200-sxm-141gb").value();
  const auto resolved = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(resolved) << to_string(resolved.error());
  // (143,771 - 512 - 8,192 x 1.5 - 512 x 2 - 8 x 128) / 143,771
  EXPECT_EQ(resolved->options.mem_fraction_static, 0.897);
  const auto budget = start(model.architecture, resolved->options, &card, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_NEAR(static_cast<double>(budget->middle.at().sizes.tokens), 2795207, 0.01 * 2795207);
  EXPECT_EQ(budget->graphs, 52);
}

// DeepSeek's latent vector is on every rank, whatever --tp: 61 x 576 x 2. V3.2 keeps 128 + 4 bytes of its indexer with
// it: 61 x (1,152 + 132) = 78,324; in eight bits 61 x (512 + 16 + 128 + 132), of which the pool counts 576 + 132.
TEST(SglangLatent, IsNotCutByRanks) {
  for (const std::int64_t tp : {1, 8}) {
    const auto v3 = plan_pools(outlined("deepseek-ai/DeepSeek-V3").architecture, options_of(kNewest, tp), 0, 61);
    ASSERT_TRUE(v3) << to_string(v3.error());
    EXPECT_EQ(v3->bytes_per_token(), 70272);
    EXPECT_TRUE(v3->latent);
    EXPECT_EQ(v3->full.front().values, 0);
  }
  Options options = options_of(kNewest, 8);
  const auto v32 = plan_pools(outlined("deepseek-ai/DeepSeek-V3.2").architecture, options, 0, 61);
  ASSERT_TRUE(v32) << to_string(v32.error());
  EXPECT_EQ(v32->bytes_per_token(), 78324);
  options.kv_cache_dtype = model::parse_cache_type("fp8").value();
  const auto eight = plan_pools(outlined("deepseek-ai/DeepSeek-V3.2").architecture, options, 0, 61);
  EXPECT_EQ(eight->bytes_per_token(), 61 * (512 + 16 + 128 + 132));
  EXPECT_EQ(eight->full.front().counted, 576 + 132);
}

// Qwen3-Next: 36 layers of 32 heads of 128 x 128 in fp32 and three inputs of 2 x 2,048 + 4,096 channels in bf16, over
// four ranks; 0.9 / 1.9 of what is left is for states, three of which a request may have.
TEST(SglangStates, HaveTheirShare) {
  const OutlinedModel model = outlined("Qwen/Qwen3-Next-80B-A3B-Instruct");
  Options options = options_of(kNewest, 4);
  options.context_length = 262144;
  const auto plan = plan_pools(model.architecture, options, 0, 48);
  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_EQ(plan->full.size(), 12U);
  EXPECT_EQ(plan->states(), 36 * (8 * 128 * 128 * 4 + 8192 / 4 * 3 * 2));
  const hardware::Gpu card;
  const PoolSizes sizes = size_pools(*plan, options, &card, in_bytes(20));
  EXPECT_NEAR(static_cast<double>(sizes.states),
              20 * 0.9 / 1.9 * static_cast<double>(kGiB) / static_cast<double>(plan->states()), 1.0);
  EXPECT_NEAR(static_cast<double>(sizes.tokens),
              20 / 1.9 * static_cast<double>(kGiB) / static_cast<double>(plan->bytes_per_token()),
              static_cast<double>(plan->states() / plan->bytes_per_token()));  // what part of a state leaves

  EXPECT_EQ(most_requests(*plan, options, &card, sizes).running, sizes.states / 3);
  options.disable_radix_cache = true;
  EXPECT_EQ(most_requests(*plan, options, &card, sizes).running, std::min<std::int64_t>(2048, sizes.states));
}

// 91,749 / 40,960 x 512 = 1,146 requests are fewer than the least, and 1,707,904 / 40,960 x 512 = 21,348 more than the
// most; the logs above print 4,096 for the latter.
TEST(SglangRequests, AreBoundedBothWays) {
  const OutlinedModel model = outlined("Qwen/Qwen3-8B");
  const Options options = options_of(kNewest, 1);
  const auto plan = plan_pools(model.architecture, options, 0, 36);
  ASSERT_TRUE(plan);
  const auto running = [&](const Options& o, std::int64_t tokens) {
    return most_requests(*plan, o, nullptr, pools_of_tokens(*plan, o, {}, tokens)).running;
  };
  EXPECT_EQ(running(options, 91749), 2048);
  EXPECT_EQ(running(options, 1707904), 4096);
  EXPECT_EQ(running(options, 1000), 500);
  Options asked = options;
  asked.max_running_requests = 50;
  EXPECT_EQ(running(asked, 712400), 50);
  asked.max_running_requests = 8192;
  EXPECT_EQ(running(asked, 91749), 2048);
  asked.version = {0, 5, 6};
  EXPECT_EQ(running(asked, 91749), 8192);
}

// Lists of the logs: 23 sizes up to 160 (inference issue 3481), 36 up to 256 (pull 12978), 52 up to 512 (pull 11716).
TEST(SglangGraphs, AreCapturedForTheSizesOfTheRelease) {
  Options options = options_of({0, 4, 6}, 1);
  EXPECT_EQ(captured_batches(options, 2048).size(), 23U);
  options.version = {0, 5, 5};
  options.cuda_graph_max_bs = 256;
  EXPECT_EQ(captured_batches(options, 2048).size(), 36U);
  options.cuda_graph_max_bs = 512;
  EXPECT_EQ(captured_batches(options, 2048).size(), 52U);
  EXPECT_EQ(captured_batches(options, 2048).back(), 512);
  EXPECT_EQ(captured_batches(options, 3), (std::vector<std::int64_t>{1, 2, 3}));
  options.disable_cuda_graph = true;
  EXPECT_TRUE(captured_batches(options, 2048).empty());
  // 4 to 32 by 4, to 256 by 16, to 512 by 32, to 1,024 by 64, to 4,096 by 256, to 8,192 by 512.
  options.piecewise_graphs = true;
  EXPECT_EQ(piecewise_sizes(options, false), 8 + 14 + 8 + 8 + 12 + 8);
  EXPECT_EQ(piecewise_sizes(options, true), 8 + 14 + 8 + 8 + 4);
}

TEST(SglangStages, GiveWhatDoesNotDivideToTheLast) {
  const auto stages = serving::pipeline_stages(62, 4, serving::LayersLeft::the_last);
  EXPECT_EQ(stages[0].last, 15);
  EXPECT_EQ(stages[1].last, 30);
  EXPECT_EQ(stages[2].last, 46);
  EXPECT_EQ(stages[3].last, 62);
}

// Under data-parallel attention, heads and the embedding are cut by its ranks alone, feed-forward parts by all.
TEST(SglangWeights, AreCutByTheRanksThatShareThem) {
  const OutlinedModel model = outlined("Qwen/Qwen3-30B-A3B");
  Options whole = options_of(kNewest, 8);
  Options copies = whole;
  copies.dp = 8;
  copies.enable_dp_attention = true;
  EXPECT_EQ(copies.gpus(), 8);
  const auto stage = serving::pipeline_stages(48, 1).front();
  const std::int64_t attention = 48 * 2048 * (32 + 4 + 4 + 32) * 128;  // elements of a layer's four projections
  const std::int64_t embedding = std::int64_t{151936} * 2048;
  const std::int64_t more = serving::rank_weights(model.architecture, shares_of(copies), stage, nullptr).bytes() -
                            serving::rank_weights(model.architecture, shares_of(whole), stage, nullptr).bytes();
  // Four heads of keys and values on eight ranks were there twice already.
  const std::int64_t twice = 48 * 2048 * (4 + 4) * 128;
  EXPECT_NEAR(static_cast<double>(more), 2.0 * static_cast<double>((attention + embedding) * 7 - twice) / 8, 4e6);

  // Experts over --ep are whole, or cut: as many bytes, but not where some stay in host memory.
  Options experts = whole;
  experts.ep = 8;
  EXPECT_EQ(serving::rank_weights(model.architecture, shares_of(experts), stage, nullptr).bytes(),
            serving::rank_weights(model.architecture, shares_of(whole), stage, nullptr).bytes());
  Options few = whole;
  few.kt_num_gpu_experts = 2;
  const std::int64_t kept = serving::rank_weights(model.architecture, shares_of(whole), stage, nullptr).bytes() -
                            serving::rank_weights(model.architecture, shares_of(few), stage, nullptr).bytes();
  EXPECT_EQ(kept, std::int64_t{48} * 126 * 3 * 2048 * 768 / 8 * 2);
}

// https://github.com/kvcache-ai/ktransformers/issues/1804: 13.06 GiB of DeepSeek V3 in eight bits on each of two ranks,
// two experts of a layer on the GPU. By hand: 61 layers x 512 x 64 heads x (128 + 128) x 2 bytes are kept once more.
TEST(SglangWeights, KeepLatentAttentionsMatricesTwice) {
  const OutlinedModel model = outlined("deepseek-ai/DeepSeek-V3");
  const auto quantisation = model::read_quantisation(JsonObject(model.config["quantization_config"], "config"));
  ASSERT_TRUE(quantisation);
  Options options = options_of(kNewest, 2);
  options.kt_num_gpu_experts = 2;
  const auto stage = serving::pipeline_stages(61, 1).front();
  const auto weights = serving::rank_weights(model.architecture, shares_of(options), stage, &*quantisation);
  EXPECT_EQ(weights.absorbed_bytes, std::int64_t{61} * 512 * 64 * 256 * 2);
  EXPECT_NEAR(in_gib(weights.bytes()), 13.06, 0.03 * 13.06);
}

TEST(SglangStart, SaysWhatSglangSays) {
  const OutlinedModel model = outlined("meta-llama/Llama-3.1-8B-Instruct");
  const auto card = hardware::find_gpu("rtx-4090").value();
  Flags flags;
  flags.mem_fraction_static = 0.5;
  auto resolved = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(resolved) << to_string(resolved.error());
  auto budget = start(model.architecture, resolved->options, &card, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.outcome, Outcome::no_room);
  EXPECT_EQ(refusal(*budget, resolved->options),
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: "
            "mem_fraction_static=0.5");
  EXPECT_GT(*budget->least_fraction(resolved->options), 0.6);
  EXPECT_LT(*budget->least_fraction(resolved->options), 0.7);

  flags.mem_fraction_static = 0.8;
  resolved = resolve(flags, {model.architecture, model.config, &card});
  budget = start(model.architecture, resolved->options, &card, 0, nullptr);
  EXPECT_EQ(budget->middle.outcome, Outcome::starts);
  EXPECT_TRUE(refusal(*budget, resolved->options).empty());
  const auto lines = log_lines(*budget, resolved->options);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[2].substr(0, 32), "KV Cache is allocated. #tokens: ");
  EXPECT_EQ(lines[4].substr(0, 21), "max_total_num_tokens=");
  EXPECT_NE(lines[4].find(", chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests="),
            std::string::npos);
  EXPECT_NE(lines[4].find(", context_len=131072, available_gpu_mem="), std::string::npos);

  flags.mem_fraction_static = 0.999;
  resolved = resolve(flags, {model.architecture, model.config, &card});
  budget = start(model.architecture, resolved->options, &card, 0, nullptr);
  EXPECT_EQ(budget->middle.outcome, Outcome::graphs_overflow);
  EXPECT_EQ(refusal(*budget, resolved->options).substr(0, 37), "Exception: Capture cuda graph failed:");
}

TEST(SglangStart, WithoutACardHoldsOneRequest) {
  const OutlinedModel model = outlined("meta-llama/Llama-3.1-8B-Instruct");
  Flags flags;
  flags.context_length = 8192;
  const auto resolved = resolve(flags, {model.architecture, model.config, nullptr});
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->options.mem_fraction_static, 0.88);
  const auto budget = start(model.architecture, resolved->options, nullptr, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.at().sizes.tokens, 8192);
  EXPECT_EQ(budget->middle.at().plan.bytes_per_token(), 131072);
}

}  // namespace
}  // namespace ullage::engines::sglang
