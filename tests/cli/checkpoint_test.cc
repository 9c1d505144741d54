// `ullage inspect --checkpoint`, and files of weights as MODEL.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/json_answer.h"

namespace ullage {
namespace {

namespace fs = std::filesystem;
using testing::answer;
using testing::run;

const std::string kData = std::string(ULLAGE_TEST_DATA) + "/checkpoints/";

// A Llama of one layer, its configuration and its weights in one or two files.
class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("checkpoint_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    put("config.json", R"({"model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,)"
                       R"("num_attention_heads":2,"vocab_size":10,"tie_word_embeddings":true})");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }

  // Tensors of bf16 by name and shape.
  void put_tensors(const std::string& file,
                   const std::vector<std::pair<std::string, std::vector<int>>>& tensors) const {
    Json header = Json::object();
    std::uint64_t end = 0;
    for (const auto& [name, shape] : tensors) {
      std::uint64_t bytes = 2;
      for (const int size : shape) bytes *= static_cast<std::uint64_t>(size);
      header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
      end += bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    put(file, std::string(reinterpret_cast<const char*>(&length), 8) + text + std::string(end, '\0'));
  }

  std::vector<std::pair<std::string, std::vector<int>>> attention() const {
    const std::string layer = "model.layers.0.self_attn.";
    return {{layer + "q_proj.weight", {8, 8}},
            {layer + "k_proj.weight", {8, 8}},
            {layer + "v_proj.weight", {8, 8}},
            {layer + "o_proj.weight", {8, 8}}};
  }
  std::vector<std::pair<std::string, std::vector<int>>> rest() const {
    const std::string layer = "model.layers.0.";
    return {{"model.embed_tokens.weight", {10, 8}},
            {layer + "mlp.gate_proj.weight", {16, 8}},
            {layer + "mlp.up_proj.weight", {16, 8}},
            {layer + "mlp.down_proj.weight", {8, 16}},
            {layer + "input_layernorm.weight", {8}},
            {layer + "post_attention_layernorm.weight", {8}},
            {"model.norm.weight", {8}}};
  }

  fs::path folder_;
};

TEST_F(Folder, WeightsInOneFileAreTheModels) {
  auto tensors = attention();
  for (auto& tensor : rest()) tensors.push_back(std::move(tensor));
  tensors.push_back({"lm_head.weight", {10, 8}});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}});
  tensors.push_back({"model.layers.1.input_layernorm.weight", {8}});
  put_tensors("model.safetensors", tensors);
  for (const std::string& name : {path(), path("model.safetensors")}) {
    const Json said = answer("inspect " + name + " --checkpoint");
    EXPECT_EQ(said["model"]["parameters"], 744) << name;
    EXPECT_EQ(said["checkpoint"]["elements"], 744 + 80 + 2 + 8);
    EXPECT_EQ(said["checkpoint"]["files"]["tensor_bytes"], 2 * (744 + 80 + 2 + 8));
    ASSERT_EQ(said["checkpoint"]["extras"].size(), 3U) << said.dump();
    EXPECT_EQ(said["checkpoint"]["extras"][0]["name"], "prediction_layers");
    EXPECT_EQ(said["checkpoint"]["extras"][1]["name"], "tied_head");
    EXPECT_EQ(said["checkpoint"]["extras"][1]["elements"], 80);
    EXPECT_EQ(said["checkpoint"]["extras"][2]["name"], "rotary_frequencies");
    EXPECT_TRUE(said["checkpoint"]["only_in_model"].empty());
    EXPECT_TRUE(said["warnings"].empty()) << said["warnings"].dump();
  }
}

TEST_F(Folder, WhatIsMissingOrOfAnotherSizeIsNamed) {
  auto tensors = attention();
  tensors[0].second = {8, 4};
  put_tensors("model.safetensors", tensors);
  const Json said = answer("inspect " + path() + " --checkpoint");
  EXPECT_EQ(said["checkpoint"]["only_in_model"].size(), 7U);
  EXPECT_EQ(said["checkpoint"]["other_shape"], Json::array({"model.layers.0.self_attn.q_proj.weight"}));
  const Json trained = answer("train " + path() + " --seq-len 8");
  EXPECT_NE(trained["warnings"].dump().find("8 parameters of the configuration are not in its weights"),
            std::string::npos)
      << trained["warnings"].dump();
}

TEST_F(Folder, AnIndexNamesTheFiles) {
  put_tensors("model-00001-of-00002.safetensors", attention());
  put_tensors("model-00002-of-00002.safetensors", rest());
  Json map = Json::object();
  for (const auto& tensor : attention()) map[tensor.first] = "model-00001-of-00002.safetensors";
  for (const auto& tensor : rest()) map[tensor.first] = "model-00002-of-00002.safetensors";
  put("model.safetensors.index.json", Json({{"weight_map", map}}).dump());
  for (const char* name : {"", "model.safetensors.index.json", "model-00002-of-00002.safetensors"}) {
    const Json said = answer("inspect " + path(name) + " --checkpoint");
    EXPECT_EQ(said["checkpoint"]["files"]["files"], 2) << name;
    EXPECT_EQ(said["checkpoint"]["elements"], 744) << name;
  }
  fs::remove(path("model-00002-of-00002.safetensors"));
  const auto missing = run("inspect " + path() + " --checkpoint");
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.err, "ullage: " + path() +
                             "model-00002-of-00002.safetensors: is missing, one of 2 files of this "
                             "model; fetch it into the folder of the index\n");
  const Json trained = answer("train " + path() + " --seq-len 8");
  EXPECT_NE(trained["warnings"].dump().find("the weights beside the configuration were not read"), std::string::npos);
}

TEST_F(Folder, WithoutAConfigurationTheFileStillTells) {
  put_tensors("model.safetensors", attention());
  fs::remove(path("config.json"));
  const Json said = answer("inspect " + path("model.safetensors") + " --checkpoint");
  EXPECT_EQ(said["model"]["parameters"], nullptr);
  EXPECT_EQ(said["checkpoint"]["elements"], 256);
  EXPECT_EQ(run("inspect " + path("model.safetensors")).err,
            "ullage: " + path("model.safetensors") +
                ": has no config.json beside it, which says what model it is of; put it there or ask for "
                "--checkpoint\n");
}

TEST(GgufModel, IsInspectedAndNotTrained) {
  const std::string file = kData + "meta-llama__Llama-3.2-1B-Instruct.Q8_0.gguf";
  const Json said = answer("inspect " + file);
  EXPECT_EQ(said["model"]["parameters"], 1235814400);
  EXPECT_EQ(said["layer_count"], 16);
  EXPECT_NE(said["warnings"].dump().find("the file ends with its header"), std::string::npos);
  const Json stored = answer("inspect " + file + " --checkpoint");
  EXPECT_EQ(stored["checkpoint"]["files"]["format"], "gguf");
  EXPECT_EQ(stored["checkpoint"]["elements"], 1235814400);
  EXPECT_EQ(stored["checkpoint"]["types"][0]["name"], "Q8_0");
  const auto trained = run("train " + file);
  EXPECT_EQ(trained.status, 2);
  EXPECT_NE(trained.err.find("is a GGUF file, which PyTorch does not train from"), std::string::npos);
}

TEST(CheckpointByRule, CountsWhatConfigurationsSay) {
  // 671,026,404,352 parameters, 14,848 corrections, the predicting layer and the scales of blocks of 128 x 128: what
  // the headers of the published weights add up to.
  const Json said = answer("inspect deepseek-ai/DeepSeek-V3 --checkpoint");
  EXPECT_EQ(said["checkpoint"]["files"], nullptr);
  EXPECT_EQ(said["checkpoint"]["elements"], 684531386000);
}

TEST(CheckpointByRule, OptionsWithoutEffectAreRefused) {
  EXPECT_EQ(run("inspect gpt2 --checkpoint --dtype fp32").err,
            "ullage: --dtype: has no effect on what is stored; leave it or --checkpoint out\n");
}

}  // namespace
}  // namespace ullage
