// What vLLM refuses before it loads anything, and which of its two engines runs.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "engines/outlined_model.h"
#include "engines/vllm/budget.h"
#include "engines/vllm/checks.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::engines::vllm {
namespace {

using ullage::testing::outlined;
using ullage::testing::OutlinedModel;

constexpr const char* kLlama = "meta-llama/Llama-3.1-8B-Instruct";

Expected<Resolved> resolved(const Flags& flags, const char* card, const OutlinedModel& model) {
  const auto gpu = hardware::find_gpu(card);
  EXPECT_TRUE(gpu);
  return resolve(flags, {model.architecture, model.config, gpu ? &*gpu : nullptr});
}

model::Quantisation fp8_in_blocks() { return model::quantisation_named("fp8-block").value(); }

// Threads of those who met it: 768 / 4 = 192 (Qwen3 30B A3B FP8) and 1536 / 8 = 192 (MiniMax M2, Qwen3 235B).
TEST(Blocks, MustBeWholeOnEveryRank) {
  const OutlinedModel model = outlined("Qwen/Qwen3-30B-A3B");
  Options options;
  options.tensor_parallel_size = 2;
  EXPECT_TRUE(check_blocks(model.architecture, options, fp8_in_blocks()));
  options.tensor_parallel_size = 4;
  const auto refused = check_blocks(model.architecture, options, fp8_in_blocks());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--tensor-parallel-size");
  EXPECT_NE(refused.error().message.find("The output_size of gate's and up's weight = 192 is not divisible by weight "
                                         "quantization block_n = 128"),
            std::string::npos)
      << refused.error().message;
  // Whole experts on each rank are not cut.
  options.enable_expert_parallel = true;
  EXPECT_TRUE(check_blocks(model.architecture, options, fp8_in_blocks()));
  // No blocks, nothing to break.
  options.enable_expert_parallel = false;
  EXPECT_TRUE(check_blocks(model.architecture, options, model::quantisation_named("fp8").value()));
}

// By hand: 14336 / 8 = 1792 = 14 x 128; a head of 128 on each rank; at 64 ranks a query head of 64 is half a block.
TEST(Blocks, OfADenseModel) {
  const OutlinedModel model = outlined(kLlama);
  Options options;
  for (const std::int64_t ranks : {1, 2, 4, 8, 16}) {
    options.tensor_parallel_size = ranks;
    EXPECT_EQ(check_blocks(model.architecture, options, fp8_in_blocks()).has_value(), 14336 / ranks % 128 == 0)
        << ranks;
  }
}

// vllm/config/model.py: yarn counts from the length before stretching, others from what the file says; llama3 and
// longrope are in it already.
TEST(Length, IsStretchedAsTheConfigurationSays) {
  const OutlinedModel llama = outlined(kLlama);
  EXPECT_EQ(derived_length(llama.architecture, llama.config), 131072);
  const OutlinedModel yarn =
      outlined("Qwen/Qwen2.5-7B-Instruct",
               {{"max_position_embeddings", 32768},
                {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}}}});
  EXPECT_EQ(derived_length(yarn.architecture, yarn.config), 131072);
  const OutlinedModel lite = outlined("deepseek-ai/DeepSeek-V2-Lite");
  EXPECT_EQ(derived_length(lite.architecture, lite.config), 163840);
}

TEST(Length, BeyondTheModelsOwnIsRefused) {
  const OutlinedModel model = outlined(kLlama);
  Flags flags;
  flags.max_model_len = 131073;
  const auto refused = resolved(flags, "h100", model);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--max-model-len");
  EXPECT_NE(refused.error().message.find("User-specified max_model_len (131073) is greater than the derived "
                                         "max_model_len (131072) in model's config.json"),
            std::string::npos)
      << refused.error().message;
  flags.env = {{"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"}};
  const auto allowed = resolved(flags, "h100", model);
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->options.max_model_len, 131073);
  EXPECT_TRUE(allowed->ignored_env.empty());
}

// vllm/config/speculative.py: "Unsupported speculative method".
TEST(Drafting, NeedsLayersThatDraft) {
  Flags flags;
  flags.speculative_config = R"({"method": "mtp", "num_speculative_tokens": 2})";
  const auto refused = resolved(flags, "h100", outlined(kLlama));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Unsupported speculative method: 'mtp'"), std::string::npos);
  EXPECT_TRUE(has_drafting_layers(outlined("Qwen/Qwen3.5-27B").config));
  EXPECT_FALSE(has_drafting_layers({{"num_nextn_predict_layers", 0}}));
  EXPECT_TRUE(has_drafting_layers({{"num_nextn_predict_layers", 1}}));
}

// DeepSeek V2 Lite: 27 layers, 16 heads of 128 + 64; a latent vector of 512 + 64. In 16 bits, by hand.
TEST(Latents, AreSpreadOutWhereTheyAreNotKept) {
  const OutlinedModel model = outlined("deepseek-ai/DeepSeek-V2-Lite");
  const auto bytes = [&](const char* release, const char* off) {
    Flags flags;
    flags.engine_version = release;
    flags.max_model_len = 4096;
    if (off != nullptr) flags.env = {{"VLLM_MLA_DISABLE", off}};
    const auto out = resolved(flags, "h100", model);
    EXPECT_TRUE(out);
    return plan_cache(model.architecture, out->options, 0, 27)->bytes_per_token;
  };
  EXPECT_EQ(bytes("0.19.0", nullptr), 27 * 576 * 2);
  EXPECT_EQ(bytes("0.19.0", "0"), 27 * 576 * 2);
  EXPECT_EQ(bytes("0.19.0", "1"), 27 * 16 * (192 + 192) * 2);
  // Before 0.7 there were no latent vectors, and heads of 256.
  EXPECT_EQ(bytes("0.6.6", nullptr), 27 * 16 * (256 + 256) * 2);
}

TEST(Release, BeforeTheRulesIsSaidSo) {
  const OutlinedModel model = outlined(kLlama);
  Flags flags;
  flags.engine_version = "0.1.7";
  const auto refused = resolved(flags, "a100", model);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  flags.engine_version = "0.2.4";
  EXPECT_TRUE(resolved(flags, "a100", model)->older_than_known);
  flags.engine_version = "0.5.0";
  EXPECT_FALSE(resolved(flags, "a100", model)->older_than_known);
}

// vllm/engine/arg_utils.py (_is_v1_supported_oracle) of 0.8 to 0.10.
TEST(FirstEngine, RunsWhatTheOtherDoesNotKnow) {
  const OutlinedModel llama = outlined(kLlama);
  const OutlinedModel sees = outlined("meta-llama/Llama-3.2-11B-Vision-Instruct");
  const auto h100 = hardware::find_gpu("h100").value();
  const auto t4 = hardware::find_gpu("t4").value();
  EXPECT_EQ(first_engine({0, 7, 3}, llama.architecture, &h100, false), FirstEngine::by_release);
  EXPECT_EQ(first_engine({0, 8, 5}, llama.architecture, &h100, false), FirstEngine::no);
  EXPECT_EQ(first_engine({0, 8, 5}, llama.architecture, &h100, true), FirstEngine::by_env);
  EXPECT_EQ(first_engine({0, 8, 5}, llama.architecture, &t4, false), FirstEngine::by_card);
  EXPECT_EQ(first_engine({0, 8, 5}, sees.architecture, &h100, false), FirstEngine::by_model);
  EXPECT_EQ(first_engine({0, 11, 0}, llama.architecture, &t4, true), FirstEngine::no);
  Flags flags;
  flags.engine_version = "0.8.5";
  flags.max_model_len = 4096;
  const auto out = resolved(flags, "h100", sees);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->options.version, kLastV0);
  EXPECT_EQ(out->options.release, (Version{0, 8, 5}));
  EXPECT_TRUE(plan_cache(sees.architecture, out->options, 0, sees.architecture.layer_count()));
}

TEST(CaptureSizes, AreReadStrictly) {
  EXPECT_EQ(read_capture_sizes("[1, 2,4]", 8192).value(), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(read_capture_sizes("8 4 4 1", 8192).value(), (std::vector<std::int64_t>{1, 4, 8}));
  EXPECT_EQ(read_capture_sizes("1,4096", 2048).value(), (std::vector<std::int64_t>{1}));
  for (const char* nonsense : {"", "[]", "[", "]1[", "1]2[", "1;2", "0", "-1", "1e3", "1.5", "99999999999999999999",
                               "100000", "[1,2", "1,2]", ",", "1x"}) {
    EXPECT_FALSE(read_capture_sizes(nonsense, 8192)) << nonsense;
  }
  EXPECT_FALSE(read_capture_sizes("4096", 2048));
}

TEST(Adapters, DoNothingUntilTheyAreEnabled) {
  Flags flags;
  flags.max_loras = 4;
  const auto idle = resolved(flags, "h100", outlined(kLlama));
  ASSERT_TRUE(idle);
  ASSERT_EQ(idle->idle_flags.size(), 1U);
  EXPECT_EQ(idle->idle_flags.front().first, "--max-loras");
  EXPECT_EQ(idle->options.lora.slots, 0);
  flags.enable_lora = true;
  EXPECT_TRUE(resolved(flags, "h100", outlined(kLlama))->idle_flags.empty());
}

double gib_of(std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

// https://github.com/vllm-project/vllm/issues/7593 prints 2.3463 GiB for each of 8 ranks. By hand: 42 layers of 16 + 8
// + 8 heads of 256 with their output and a feed-forward of 14336, an eighth of each, an eighth of 256,000 rows, in 16
// bits, and a table of 8192 x 256 in every layer.
TEST(Weights, HaveATableInEveryLayerOfTheFirstGemmas) {
  const OutlinedModel model = outlined("google/gemma-2-9b-it");
  Flags flags;
  flags.engine_version = "0.5.4";
  flags.tensor_parallel_size = 8;
  const auto out = resolved(flags, "l4", model);
  ASSERT_TRUE(out);
  const RankWeights weights = rank_weights(model.architecture, out->options, pipeline_stages(42, 1).front(), nullptr);
  EXPECT_EQ(weights.rotary_bytes, 42 * 8192 * 256 * 2);
  EXPECT_NEAR(gib_of(weights.bytes()), 2.3463, 0.015 * 2.3463);
}

// https://github.com/vllm-project/vllm/pull/10909 prints 18.49 GiB for each of two ranks in fp32. A rank has the one
// group of B and C whole: 128 rows more than half of them, of 4096 columns, 4 taps and a bias.
TEST(Weights, CopyGroupsThatRanksShare) {
  const OutlinedModel model = outlined("ibm-ai-platform/Bamba-9B-v1");
  Flags flags;
  flags.engine_version = "0.6.4";
  flags.dtype = "float32";
  flags.tensor_parallel_size = 2;
  flags.max_model_len = 1024;
  const auto out = resolved(flags, "h100", model);
  ASSERT_TRUE(out);
  const Stage stage = pipeline_stages(32, 1).front();
  const RankWeights two = rank_weights(model.architecture, out->options, stage, nullptr);
  EXPECT_EQ(two.rotary_bytes, 262144 * 64 * 4);
  EXPECT_NEAR(gib_of(two.bytes()), 18.49, 0.01 * 18.49);
  Options whole = out->options;
  whole.tensor_parallel_size = 1;
  const std::int64_t one = rank_weights(model.architecture, whole, stage, nullptr).parameters_bytes;
  const std::int64_t copied = std::int64_t{29} * 128 * (4096 + 4 + 1) * 4;
  // Norms and biases of output are whole on both.
  EXPECT_NEAR(static_cast<double>(two.parameters_bytes), static_cast<double>(one) / 2 + static_cast<double>(copied),
              4e6);
}

// https://github.com/llm-d-incubation/llm-d-planner/pull/205: gpt-oss 20B at 0.95 of an H100 runs out of memory when
// its sampler warms up; at 0.9 on two of them it starts.
TEST(Start, RunsOutWhereExpertsLeavePieces) {
  const OutlinedModel model = outlined("openai/gpt-oss-20b");
  const auto quantisation = model::read_quantisation(JsonObject(model.config["quantization_config"], "config"));
  ASSERT_TRUE(quantisation);
  auto card = hardware::find_gpu("h100-sxm-80gb").value();
  hardware::set_usable(card, static_cast<std::int64_t>(79.19 * static_cast<double>(kGiB)));
  const auto outcome = [&](double utilization, std::int64_t ranks) {
    Flags flags;
    flags.engine_version = "0.19.0";
    flags.gpu_memory_utilization = utilization;
    flags.tensor_parallel_size = ranks;
    flags.max_model_len = 8192;
    const auto out = resolve(flags, {model.architecture, model.config, &card});
    EXPECT_TRUE(out);
    return start(model.architecture, out->options, &card, 0, &*quantisation)->middle;
  };
  EXPECT_EQ(outcome(0.95, 1).outcome, Outcome::graphs_overflow);
  EXPECT_GT(outcome(0.95, 1).short_bytes, 0);
  EXPECT_EQ(outcome(0.95, 2).outcome, Outcome::graphs_overflow);
  EXPECT_EQ(outcome(0.9, 2).outcome, Outcome::starts);
}

// https://github.com/vllm-project/vllm/issues/7553: four RTX 4090 hold 23,859 MiB each once Yi 1.5 34B has started with
// V0, which runs nothing behind its graphs: what the profile run reached is free again.
TEST(Start, OfTheFirstEngineRunsNothingBehindItsGraphs) {
  const OutlinedModel model = outlined("01-ai/Yi-1.5-34B-Chat");
  const auto card = hardware::find_gpu("rtx-4090").value();
  Flags flags;
  flags.engine_version = "0.5.4";
  flags.tensor_parallel_size = 4;
  const auto out = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(out);
  const auto budget = start(model.architecture, out->options, &card, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.outcome, Outcome::starts);
  EXPECT_NEAR(static_cast<double>(budget->middle.start_bytes(0, out->options)) / static_cast<double>(kMiB), 23859,
              0.01 * 23859);
}

// A refusal lacks memory, even where the card has some left.
TEST(Start, SaysWhatARefusalLacks) {
  const OutlinedModel model = outlined(kLlama);
  const auto card = hardware::find_gpu("rtx-3090").value();
  Flags flags;
  flags.engine_version = "0.19.0";
  const auto out = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(out);
  const auto budget = start(model.architecture, out->options, &card, 0, nullptr);
  ASSERT_TRUE(budget);
  ASSERT_EQ(budget->middle.outcome, Outcome::too_few_blocks);
  // 131,072 tokens of 128 KiB are 16 GiB.
  EXPECT_EQ(budget->middle.short_bytes, 16 * kGiB - budget->middle.pool_bytes);
}

}  // namespace
}  // namespace ullage::engines::vllm
