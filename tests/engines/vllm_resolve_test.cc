// vLLM's defaults by release and card, and what it refuses before it loads anything.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "engines/outlined_model.h"
#include "engines/vllm/budget.h"
#include "engines/vllm/words.h"
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

// vllm/engine/arg_utils.py and vllm/config of these releases: the table in the issue's reference.
TEST(Defaults, AreThoseOfTheReleaseAndTheCard) {
  const struct {
    const char* version;
    const char* card;
    double utilization;
    std::int64_t seqs;
    std::int64_t batched;
  } rows[] = {
      {"0.7.3", "h100-sxm-80gb", 0.9, 256, 2048},   {"0.9.0", "h100-sxm-80gb", 0.9, 1024, 8192},
      {"0.19.0", "h100-sxm-80gb", 0.9, 1024, 8192}, {"0.19.0", "a100-sxm-80gb", 0.9, 256, 2048},
      {"0.19.0", "rtx-4090", 0.9, 256, 2048},       {"0.23.1", "h100-sxm-80gb", 0.92, 1024, 8192},
  };
  const OutlinedModel llama = outlined(kLlama);
  for (const auto& row : rows) {
    Flags flags;
    flags.engine_version = row.version;
    const auto out = resolved(flags, row.card, llama);
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_EQ(out->options.gpu_memory_utilization, row.utilization) << row.version;
    EXPECT_EQ(out->options.max_num_seqs, row.seqs) << row.version << " " << row.card;
    EXPECT_EQ(out->options.max_num_batched_tokens, row.batched) << row.version << " " << row.card;
    EXPECT_EQ(out->options.max_model_len, 131072);
    EXPECT_EQ(out->options.block_size, 16);
    EXPECT_EQ(out->options.dtype, DType::bf16);
  }
}

// https://github.com/vllm-project/vllm/issues/10517: whole prompts up to 32,768 tokens, chunks behind.
TEST(Defaults, PutWholePromptsInBeforeChunksWereTheRule) {
  const OutlinedModel llama = outlined(kLlama);
  Flags flags;
  flags.engine_version = "0.6.4";
  flags.max_model_len = 29000;
  EXPECT_EQ(resolved(flags, "rtx-3090", llama)->options.max_num_batched_tokens, 29000);
  flags.max_model_len = 1000;
  EXPECT_EQ(resolved(flags, "rtx-3090", llama)->options.max_num_batched_tokens, 2048);
  flags.max_model_len = 45000;
  EXPECT_EQ(resolved(flags, "rtx-3090", llama)->options.max_num_batched_tokens, 512);
}

// The same thread: 20,000 tokens start, 29,000 do not, 35,000 and 45,000 do, since the profile run shrinks to a chunk.
TEST(Start, IsOddWhereChunksSetIn) {
  const OutlinedModel llama = outlined(kLlama);
  auto card = hardware::find_gpu("rtx-3090");
  ASSERT_TRUE(card);
  hardware::set_usable(*card, static_cast<std::int64_t>(23.58 * static_cast<double>(kGiB)));
  for (const auto& [length, starts] :
       {std::pair{20000, true}, std::pair{29000, false}, std::pair{35000, true}, std::pair{45000, true}}) {
    Flags flags;
    flags.engine_version = "0.6.4";
    flags.max_model_len = length;
    const auto out = resolve(flags, {llama.architecture, llama.config, &*card});
    ASSERT_TRUE(out);
    const auto budget = start(llama.architecture, out->options, &*card, 0, nullptr);
    ASSERT_TRUE(budget);
    EXPECT_EQ(budget->middle.outcome == Outcome::starts, starts) << length;
  }
}

TEST(Defaults, TakeHalfPrecisionThatTheCardHas) {
  const OutlinedModel llama = outlined(kLlama);
  EXPECT_EQ(resolved({}, "t4", llama)->options.dtype, DType::f16);
  Flags flags;
  flags.dtype = "bfloat16";
  const auto refused = resolved(flags, "t4", llama);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--dtype");
}

TEST(Resolve, RefusesWhatVllmRefuses) {
  const OutlinedModel llama = outlined(kLlama);
  Flags flags;
  flags.tensor_parallel_size = 3;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--tensor-parallel-size");
  flags = {};
  flags.pipeline_parallel_size = 33;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--pipeline-parallel-size");
  flags = {};
  flags.max_num_batched_tokens = 100;
  flags.max_num_seqs = 200;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--max-num-batched-tokens");
  flags = {};
  flags.gpu_memory_utilization = 1.5;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--gpu-memory-utilization");
  flags = {};
  flags.speculative_config = R"({"method": "eagle3"})";
  EXPECT_EQ(resolved(flags, "h100", llama).error().code, ErrorCode::unsupported);
  flags.speculative_config = "[";
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--speculative-config: byte 2");
  flags = {};
  flags.limit_mm_per_prompt = "0";
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--limit-mm-per-prompt");
  flags = {};
  flags.cudagraph_capture_sizes = "1,two";
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--cudagraph-capture-sizes");
}

// Sequences are shared out over copies of heads: eight heads on 16 GPUs are there twice.
TEST(Resolve, SharesSequencesOutOverCopiesOfHeads) {
  const OutlinedModel llama = outlined(kLlama);
  Flags flags;
  flags.tensor_parallel_size = 8;
  flags.decode_context_parallel_size = 8;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--decode-context-parallel-size");
  flags.tensor_parallel_size = 16;
  EXPECT_EQ(resolved(flags, "h100", llama).error().where, "--decode-context-parallel-size");
  flags.decode_context_parallel_size = 2;
  EXPECT_TRUE(resolved(flags, "h100", llama));
  flags = {};
  flags.engine_version = "0.6.4,0.19.0";
  EXPECT_EQ(resolved(flags, "h100", llama).error().code, ErrorCode::unsupported);
}

TEST(Resolve, ReadsLists) {
  Flags flags;
  flags.cudagraph_capture_sizes = "[1, 2,4]";
  flags.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 4})";
  flags.env = {{"VLLM_USE_FLASHINFER_SAMPLER", "1"}, {"HF_TOKEN", "x"}};
  const auto out = resolved(flags, "h100", outlined(kLlama));
  ASSERT_TRUE(out);
  EXPECT_EQ(captured_graphs(out->options), 2 * 3);
  EXPECT_EQ(out->options.speculative_tokens, 4);
  EXPECT_EQ(out->options.draft_layers, 0);
  EXPECT_EQ(out->options.flashinfer_sampler, true);
  EXPECT_EQ(out->ignored_env, std::vector<std::string>{"HF_TOKEN"});
}

TEST(Resolve, KnowsWhatSees) {
  const OutlinedModel seeing = outlined("google/gemma-3-4b-it");
  EXPECT_TRUE(resolved({}, "h100", seeing)->options.encodes_images);
  EXPECT_FALSE(resolved({}, "h100", outlined(kLlama))->options.encodes_images);
  Flags flags;
  flags.limit_mm_per_prompt = R"({"image": 0, "video": 0})";
  EXPECT_FALSE(resolved(flags, "h100", seeing)->options.encodes_images);
  flags.limit_mm_per_prompt = R"({"image": 1})";
  EXPECT_TRUE(resolved(flags, "h100", seeing)->options.encodes_images);
}

// "Model loading took" of experts in MXFP4 padded for Marlin's kernels:
// https://github.com/vllm-project/vllm/issues/23278
TEST(Weights, ArePaddedWhereExpertsAreInMxfp4) {
  const OutlinedModel model = outlined("openai/gpt-oss-120b");
  const auto quantisation = model::read_quantisation(JsonObject(model.config["quantization_config"], "config"));
  ASSERT_TRUE(quantisation) << to_string(quantisation.error());
  const auto out = resolved({}, "h100", model);
  ASSERT_TRUE(out);
  const Stage stage = pipeline_stages(model.architecture.layer_count(), 1).front();
  EXPECT_NEAR(static_cast<double>(rank_weights(model.architecture, out->options, stage, &*quantisation).bytes()),
              65.97 * static_cast<double>(kGiB), 0.003 * 65.97 * static_cast<double>(kGiB));
}

double gib_of(std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

struct LoggedWeights {
  const char* model;
  const char* dtype;
  const char* quantisation;  // while they are loaded; empty: none
  std::int64_t tp;
  double gib;
};

void expect_logged(const LoggedWeights& row, double within) {
  const OutlinedModel model = outlined(row.model);
  Flags flags;
  flags.engine_version = "0.19.0";
  flags.dtype = row.dtype;
  flags.tensor_parallel_size = row.tp;
  const auto out = resolved(flags, "h100-sxm-80gb", model);
  ASSERT_TRUE(out) << to_string(out.error());
  const auto quantisation = model::quantisation_named(row.quantisation[0] != '\0' ? row.quantisation : "bf16");
  ASSERT_TRUE(quantisation);
  const Stage stage = pipeline_stages(model.architecture.layer_count(), 1).front();
  const RankWeights weights =
      rank_weights(model.architecture, out->options, stage, row.quantisation[0] != '\0' ? &*quantisation : nullptr);
  EXPECT_NEAR(gib_of(weights.bytes()), row.gib, within * row.gib) << row.model;
}

// "Model loading took": start-up logs of vLLM 0.19.0 on H100.
TEST(Weights, AreThoseThatTheLogNames) {
  for (const LoggedWeights& row : std::initializer_list<LoggedWeights>{
           {"meta-llama/Llama-3.1-8B-Instruct", "bf16", "", 1, 14.99},
           {"meta-llama/Llama-3.1-8B-Instruct", "bf16", "", 4, 3.77},
           {"meta-llama/Llama-3.1-8B-Instruct", "fp32", "", 1, 29.98},
           {"google/gemma-2-9b-it", "bf16", "", 1, 17.22},
           {"Qwen/Qwen2.5-72B", "bf16", "", 2, 67.82},
           {"Qwen/Qwen2.5-72B", "bf16", "", 4, 34.01},
           {"Qwen/Qwen3-8B", "bf16", "", 1, 15.27},
           {"Qwen/Qwen3-14B", "bf16", "", 1, 27.52},
           {"microsoft/phi-2", "fp16", "", 1, 5.19},
           {"Qwen/Qwen1.5-MoE-A2.7B", "bf16", "", 1, 26.67},
           {"deepseek-ai/DeepSeek-V2-Lite-Chat", "bf16", "", 1, 29.43},
       })
    expect_logged(row, 0.01);
}

// Weights quantised to fp8 while they were loaded, and a table of positions eight times as long as the model's own
// limit where it stretches them linearly.
TEST(Weights, AreThoseOfLogsWhereTheyAreQuantisedOrStretched) {
  for (const LoggedWeights& row : std::initializer_list<LoggedWeights>{
           {"meta-llama/Llama-3.1-8B-Instruct", "bf16", "fp8", 1, 8.49},
           {"meta-llama/Llama-3.3-70B-Instruct", "bf16", "fp8", 2, 33.88},
           {"meta-llama/Llama-3.3-70B-Instruct", "bf16", "fp8", 4, 16.96},
           {"google/gemma-3-4b-it", "bf16", "", 1, 8.58},
           {"google/gemma-3-12b-it", "bf16", "", 1, 23.31},
           {"google/gemma-3-27b-it", "bf16", "", 1, 51.45},
       })
    expect_logged(row, 0.005);
}

// A plain way of storing is the same as none, whole or cut.
TEST(Weights, DoNotDependOnTheWayTheyAreCounted) {
  for (const char* name : {"meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V2-Lite"}) {
    const OutlinedModel model = outlined(name);
    const auto plain = model::quantisation_named("bf16");
    ASSERT_TRUE(plain);
    for (const bool experts : {false, true}) {
      Options options;
      options.tensor_parallel_size = 4;
      options.pipeline_parallel_size = 2;
      options.enable_expert_parallel = experts;
      for (const Stage& stage : pipeline_stages(model.architecture.layer_count(), 2)) {
        EXPECT_EQ(rank_weights(model.architecture, options, stage, nullptr).bytes(),
                  rank_weights(model.architecture, options, stage, &*plain).bytes())
            << name << " " << stage.first;
      }
    }
  }
}

// By hand: rank 16 for one adapter in bf16, of Llama 3.1 8B's seven matrices a layer, (in + out) x 16 x 2 bytes.
TEST(Weights, CountPlacesForAdapters) {
  const OutlinedModel model = outlined(kLlama);
  Options options;
  options.lora = {1, 16};
  const std::int64_t widths =
      (4096 + 4096) * 2 + (4096 + 1024) * 2 + (4096 + 14336) * 3;  // query and output, key and value, feed-forward
  const Stage stage = pipeline_stages(32, 1).front();
  EXPECT_EQ(rank_weights(model.architecture, options, stage, nullptr).lora_bytes, 32 * widths * 16 * 2);
}

TEST(Start, SaysWhatVllmSays) {
  const OutlinedModel model = outlined(kLlama);
  auto card = hardware::find_gpu("rtx-3090");
  ASSERT_TRUE(card);
  Flags flags;
  flags.engine_version = "0.19.0";
  auto options = resolve(flags, {model.architecture, model.config, &*card})->options;
  auto budget = start(model.architecture, options, &*card, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.outcome, Outcome::too_few_blocks);
  const std::string longest =
      std::to_string(longest_request(budget->tightest().cache, options, budget->middle.capacity.blocks));
  // 131,072 tokens of 128 KiB are 16 GiB.
  EXPECT_EQ(refusal(*budget, options, 0).substr(0, 94),
            "To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is n");
  EXPECT_NE(refusal(*budget, options, 0).find("the estimated maximum model length is " + longest), std::string::npos);

  options.gpu_memory_utilization = 0.5;
  budget = start(model.architecture, options, &*card, 0, nullptr);
  EXPECT_EQ(refusal(*budget, options, 0).substr(0, 43), "No available memory for the cache blocks. T");
  EXPECT_TRUE(log_lines(*budget, options).empty());

  options.gpu_memory_utilization = 0.9;
  budget = start(model.architecture, options, &*card, 4 * kGiB, nullptr);
  EXPECT_EQ(budget->middle.outcome, Outcome::card_in_use);
  EXPECT_EQ(refusal(*budget, options, 4 * kGiB).substr(0, 23), "Free memory on device (");
}

// https://github.com/vllm-project/vllm/issues/49064: 161 blocks for the states of 256 sequences.
TEST(Start, CountsBlocksForStates) {
  const OutlinedModel model = outlined("Qwen/Qwen3.5-27B");
  Flags flags;
  flags.engine_version = "0.23.1";
  flags.tensor_parallel_size = 2;
  flags.max_model_len = 122633;
  flags.max_num_seqs = 256;
  flags.kv_cache_memory_bytes = 4'144'643'441;
  const auto options = resolve(flags, {model.architecture, model.config, nullptr})->options;
  const auto budget = start(model.architecture, options, nullptr, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.capacity.blocks, 161);
  EXPECT_EQ(budget->middle.capacity.tokens_printed, 123399);
  EXPECT_EQ(budget->middle.outcome, Outcome::too_few_states);
  EXPECT_EQ(refusal(*budget, options, 0).substr(0, 61),
            "max_num_seqs (256) exceeds available Mamba cache blocks (161)");
}

// By hand: 1,000 + 24 tokens, the last of which is never put in, are 64 blocks of 16.
TEST(Workload, IsLimitedByBlocksOrBySequences) {
  const OutlinedModel model = outlined(kLlama);
  Options options;
  options.kv_cache_dtype = model::cache_type(DType::bf16);
  options.max_model_len = 8192;
  options.max_num_seqs = 8;
  const auto plan = plan_cache(model.architecture, options, 0, 32);
  ASSERT_TRUE(plan);
  const WorkloadFit few = fit_workload(*plan, options, 64 * 5 + 63, {1000, 24, {}});
  EXPECT_EQ(few.blocks_per_request, 64);
  EXPECT_EQ(few.most_requests, 5);
  EXPECT_FALSE(few.by_sequences);
  const WorkloadFit many = fit_workload(*plan, options, 64 * 9, {1000, 24, {}});
  EXPECT_EQ(many.most_requests, 8);
  EXPECT_TRUE(many.by_sequences);
}

// https://github.com/vllm-project/vllm/pull/10909: 34.78 GiB are left to the cache of a card of 79.15, with 18.49 of
// weights and 1.96 beside PyTorch: V0 makes the states of all 256 sequences in the first forward pass.
TEST(Start, TakesStatesOffWhereTheyLieBesideThePool) {
  const OutlinedModel model = outlined("ibm-ai-platform/Bamba-9B-v1");
  auto card = hardware::find_gpu("h100-sxm-80gb");
  ASSERT_TRUE(card);
  hardware::set_usable(*card, static_cast<std::int64_t>(79.15 * static_cast<double>(kGiB)));
  Flags flags;
  flags.engine_version = "0.6.4";
  flags.dtype = "float32";
  flags.tensor_parallel_size = 2;
  flags.max_model_len = 1024;
  const auto out = resolve(flags, {model.architecture, model.config, &*card});
  ASSERT_TRUE(out) << to_string(out.error());
  const auto budget = start(model.architecture, out->options, &*card, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->tightest().cache.bytes_per_token, 12288);
  EXPECT_GE(gib_of(budget->low.pool_bytes), 34.78);
  EXPECT_NEAR(gib_of(budget->middle.pool_bytes), 34.78, 0.1 * 34.78);
}

TEST(Start, WithoutACardHoldsOneRequest) {
  const OutlinedModel model = outlined(kLlama);
  Flags flags;
  flags.max_model_len = 8192;
  const auto options = resolve(flags, {model.architecture, model.config, nullptr})->options;
  const auto budget = start(model.architecture, options, nullptr, 0, nullptr);
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->middle.pool_bytes, std::int64_t{8192} * 131072);
  EXPECT_EQ(budget->middle.capacity.max_concurrency, 1);
}

}  // namespace
}  // namespace ullage::engines::vllm
