// hf_quant_config.json beside a configuration, and names that say more than configurations do.
#include "cli/quantisation_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/captured_run.h"

namespace ullage {
namespace {

namespace fs = std::filesystem;
using testing::run;

class QuantisedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("Tiny-NVFP4-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    put("config.json", R"({"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,)"
                       R"("num_attention_heads":4,"vocab_size":128,"max_position_embeddings":512})");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  Json answer() const {
    const auto captured = run("serve " + folder_.string() + "/config.json --engine vllm --json");
    const auto json = parse_json(captured.out, "answer");
    EXPECT_TRUE(json) << captured.err;
    return json ? *json : Json::object();
  }

 private:
  fs::path folder_;
};

// By hand: 2 layers of four 64 x 64 and three 64 x 128 matrices, half a byte an element, a byte for each 16 and two
// fp32 scales (of the weights and the inputs) for each matrix; embedding and head of 128 x 64 and five norms in 16
// bits.
TEST_F(QuantisedFolder, SaysHowWeightsAreQuantised) {
  put("hf_quant_config.json", R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"NVFP4",)"
                              R"("kv_cache_quant_algo":"FP8","group_size":16,"exclude_modules":["lm_head"]}})");
  const Json said = answer();
  const std::int64_t elements = 2 * (4 * 64 * 64 + 3 * 64 * 128);
  const std::int64_t packed = elements / 2 + elements / 16 + 14 * 2 * 4;
  const std::int64_t plain = (2 * 128 * 64 + 5 * 64) * 2;
  EXPECT_EQ(said["components"][0]["bytes"], packed + plain);
  EXPECT_NE(said["assumptions"].dump().find("hf_quant_config.json"), std::string::npos);
}

TEST_F(QuantisedFolder, WithoutTheFileIsWarnedOf) {
  const Json said = answer();
  EXPECT_NE(said["warnings"].dump().find("say --quantization"), std::string::npos) << said["warnings"].dump();
}

TEST(QuantisationFile, KeepsTheNameOfWhatIsNotModelled) {
  const Json file = {{"quantization", {{"quant_algo", "W4A8_AWQ"}}}};
  EXPECT_EQ(cli::quantisation_in_file(file)["quant_method"], "modelopt W4A8_AWQ");
  EXPECT_TRUE(cli::quantisation_in_file(Json::array()).is_null());
  EXPECT_TRUE(cli::quantisation_in_file({{"quantization", {{"quant_algo", nullptr}}}}).is_null());
}

// GraniteMoeHybridConfig takes every layer for Mamba where nothing else is said.
TEST(Mixers, ByDefaultAreWarnedOf) {
  const auto captured =
      run("serve ibm-granite/granite-4.0-h-small --engine vllm --max-model-len 4096 --set layer_types=null --json");
  EXPECT_NE(captured.out.find("does not say which layers attend"), std::string::npos) << captured.err;
  const auto known = run("serve ibm-granite/granite-4.0-h-small --engine vllm --max-model-len 4096 --json");
  EXPECT_EQ(known.out.find("does not say which layers attend"), std::string::npos);
  // Four layers attend, with 8 heads of 128 in 16 bits.
  EXPECT_EQ(parse_json(known.out, "answer").value()["kv"]["bytes_per_token"], 4 * 2 * 8 * 128 * 2);
}

}  // namespace
}  // namespace ullage
