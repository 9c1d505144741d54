// Configurations from the metadata of GGUF files, against the catalogue's published ones.
#include "model/checkpoint/gguf_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/catalogue.h"
#include "model/checkpoint_bytes.h"
#include "model/family.h"

namespace ullage::model {
namespace {

Architecture published(const char* name) {
  const auto entry = find_model(name);
  EXPECT_TRUE(entry) << name;
  auto built = build_architecture(entry->config, name);
  EXPECT_TRUE(built) << to_string(built.error());
  return *std::move(built);
}

void expect_same(const Architecture& made, const Architecture& model) {
  EXPECT_EQ(made.family, model.family);
  EXPECT_EQ(made.layers, model.layers);
  EXPECT_EQ(made.vocab, model.vocab);
  EXPECT_EQ(made.hidden, model.hidden);
  EXPECT_EQ(made.max_positions, model.max_positions);
  EXPECT_EQ(parameter_count(made), parameter_count(model));
  EXPECT_EQ(active_parameter_count(made), active_parameter_count(model));
  const Attention& attention = made.kinds.back().attention;
  EXPECT_EQ(attention.heads, model.kinds.back().attention.heads);
  EXPECT_EQ(attention.kv_heads, model.kinds.back().attention.kv_heads);
  EXPECT_EQ(attention.head_dim, model.kinds.back().attention.head_dim);
  // A window as wide as all positions is none; the file leaves it out.
  const auto seen = [](const Architecture& a) {
    return std::min(a.kinds.back().attention.window.value_or(a.max_positions), a.max_positions);
  };
  EXPECT_EQ(seen(made), seen(model));
}

struct Header {
  const char* file;
  const char* model;
};

class Headers : public ::testing::TestWithParam<Header> {};

TEST_P(Headers, DescribeTheModel) {
  const std::string path = std::string(ULLAGE_TEST_DATA) + "/checkpoints/" + GetParam().file + ".gguf";
  const auto source = open_file(path);
  ASSERT_TRUE(source) << path;
  const auto gguf = read_gguf(**source);
  ASSERT_TRUE(gguf) << to_string(gguf.error());
  EXPECT_TRUE(gguf->header_only);
  const auto config = config_of(*gguf, path);
  ASSERT_TRUE(config) << to_string(config.error());
  const auto made = build_architecture(*config, path);
  ASSERT_TRUE(made) << to_string(made.error());
  const Architecture model = published(GetParam().model);
  expect_same(*made, model);
  EXPECT_EQ(checkpoint_of(*gguf).elements(), parameter_count(model));
}

INSTANTIATE_TEST_SUITE_P(All, Headers,
                         ::testing::Values(Header{"meta-llama__Llama-3.2-1B-Instruct.Q8_0", "Llama-3.2-1B-Instruct"},
                                           Header{"microsoft__Phi-3.5-mini-instruct.Q4_K", "Phi-3.5-mini-instruct"},
                                           Header{"Qwen__Qwen3-30B-A3B.Q4_K", "Qwen/Qwen3-30B-A3B"},
                                           Header{"google__gemma-2-9b-it.Q4_K", "google/gemma-2-9b-it"},
                                           Header{"mistralai__Mixtral-8x7B-v0.1.Q4_K", "mistralai/Mixtral-8x7B-v0.1"},
                                           Header{"Qwen__Qwen2-0.5B-Instruct.Q8_0", "Qwen/Qwen2-0.5B-Instruct"}));

using Numbers = std::vector<std::pair<std::string, std::uint32_t>>;

// Metadata as convert_hf_to_gguf.py writes them, the embeddings and the tensors named.
Gguf header_of(const std::string& architecture, const Numbers& numbers, std::uint64_t width, std::uint64_t vocab,
               const std::vector<std::string>& tensors) {
  Bytes out = gguf_start(1 + tensors.size(), 1 + numbers.size());
  out.text("general.architecture").add<std::uint32_t>(8).text(architecture);
  for (const auto& [key, value] : numbers) add_number(out, architecture + "." + key, value);
  add_tensor(out, "token_embd.weight", 0, width, vocab, 0);
  std::uint64_t at = width * vocab * 4;
  for (const std::string& tensor : tensors) {
    add_tensor(out, tensor, 0, 8, 1, at);
    at += 32;
  }
  auto read = read_gguf(*memory_source("x.gguf", out.str()));
  EXPECT_TRUE(read) << to_string(read.error());
  return *std::move(read);
}

void expect_model(const Gguf& gguf, const char* model) {
  const auto config = config_of(gguf, "x.gguf");
  ASSERT_TRUE(config) << to_string(config.error());
  const auto made = build_architecture(*config, "x.gguf");
  ASSERT_TRUE(made) << to_string(made.error());
  expect_same(*made, published(model));
}

// key_length is that of the latent cache since MLA was built in; before, that of a head.
TEST(GgufConfig, LatentAttentionFromNewAndOldFiles) {
  const Numbers common{{"context_length", 163840},
                       {"block_count", 61},
                       {"embedding_length", 7168},
                       {"feed_forward_length", 18432},
                       {"attention.head_count", 128},
                       {"attention.q_lora_rank", 1536},
                       {"attention.kv_lora_rank", 512},
                       {"rope.dimension_count", 64},
                       {"leading_dense_block_count", 3},
                       {"expert_count", 256},
                       {"expert_used_count", 8},
                       {"expert_shared_count", 1},
                       {"expert_feed_forward_length", 2048},
                       {"expert_group_count", 8},
                       {"expert_group_used_count", 4}};
  Numbers now = common;
  now.insert(now.end(), {{"attention.head_count_kv", 1},
                         {"attention.key_length", 576},
                         {"attention.value_length", 512},
                         {"attention.key_length_mla", 192},
                         {"attention.value_length_mla", 128}});
  Numbers before = common;
  before.insert(before.end(),
                {{"attention.head_count_kv", 128}, {"attention.key_length", 192}, {"attention.value_length", 128}});
  for (const Numbers& numbers : {now, before})
    expect_model(header_of("deepseek2", numbers, 7168, 129280, {"output.weight", "blk.3.exp_probs_b.bias"}),
                 "deepseek-ai/DeepSeek-V3");
}

TEST(GgufConfig, PredictingLayersAreNotTheModels) {
  expect_model(header_of("glm4moe",
                         {{"context_length", 131072},
                          {"block_count", 93},
                          {"nextn_predict_layers", 1},
                          {"embedding_length", 5120},
                          {"feed_forward_length", 12288},
                          {"attention.head_count", 96},
                          {"attention.head_count_kv", 8},
                          {"attention.key_length", 128},
                          {"leading_dense_block_count", 3},
                          {"expert_count", 160},
                          {"expert_used_count", 8},
                          {"expert_shared_count", 1},
                          {"expert_feed_forward_length", 1536}},
                         5120, 151552, {"output.weight", "blk.0.attn_q.bias", "blk.0.attn_q_norm.weight"}),
               "zai-org/GLM-4.5");
}

TEST(GgufConfig, WindowsAndExpertsOfGptOss) {
  expect_model(header_of("gpt-oss",
                         {{"context_length", 131072},
                          {"block_count", 24},
                          {"embedding_length", 2880},
                          {"feed_forward_length", 2880},
                          {"expert_feed_forward_length", 2880},
                          {"attention.head_count", 64},
                          {"attention.head_count_kv", 8},
                          {"attention.key_length", 64},
                          {"attention.sliding_window", 128},
                          {"expert_count", 32},
                          {"expert_used_count", 4}},
                         2880, 201088, {"output.weight"}),
               "openai/gpt-oss-20b");
}

TEST(GgufConfig, SaysWhatIsNotModelled) {
  const auto problem = [](const Gguf& gguf) {
    const auto got = config_of(gguf, "x.gguf");
    return got ? "read" : to_string(got.error());
  };
  EXPECT_EQ(problem(Gguf{}), "x.gguf: general.architecture: missing; this file holds no model");
  EXPECT_NE(problem(header_of("rwkv6", {}, 8, 8, {}))
                .find("x.gguf: general.architecture: 'rwkv6' is not modelled; known "
                      "are llama, qwen2,"),
            std::string::npos);
  Bytes differing = gguf_start(0, 2);
  differing.text("general.architecture").add<std::uint32_t>(8).text("llama");
  differing.text("llama.attention.head_count_kv").add<std::uint32_t>(9).add<std::uint32_t>(4).add<std::uint64_t>(2);
  differing.add<std::uint32_t>(8).add<std::uint32_t>(4);
  EXPECT_EQ(problem(read_gguf(*memory_source("x", differing.str())).value()),
            "x.gguf: llama.attention.head_count_kv: differs from layer to layer, which is not modelled; name the "
            "model's config.json");
}

}  // namespace
}  // namespace ullage::model
