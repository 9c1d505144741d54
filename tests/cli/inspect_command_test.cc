// `ullage inspect` and the lists, on published models.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/json_answer.h"

namespace ullage {
namespace {

using testing::answer;
using testing::run;

struct Published {
  const char* model;
  std::int64_t parameters;
  std::int64_t macs;
};

// Parameters as torchvision's documentation states them; multiply-accumulates of convolutions and fully connected
// layers for an image of 224 x 224 pixels (tests/data/lab/torchvision.json, counted by torchvision and PyTorch).
constexpr Published kPublished[] = {
    {"alexnet", 61100840, 714188480}, {"vgg16", 138357544, 15470264320}, {"resnet50", 25557032, 4089184256}};

class ImageModels : public ::testing::TestWithParam<Published> {};

TEST_P(ImageModels, ParametersAndMultiplyAccumulatesAreThePublishedOnes) {
  const Json said = answer(std::string("inspect ") + GetParam().model);
  EXPECT_EQ(said["model"]["parameters"], GetParam().parameters);
  EXPECT_EQ(said["forward"]["macs"], GetParam().macs);
}

INSTANTIATE_TEST_SUITE_P(All, ImageModels, ::testing::ValuesIn(kPublished));

std::int64_t sum(const Json& modules, std::string_view prefix, const char* key) {
  std::int64_t total = 0;
  for (const Json& module : modules) {
    if (module["name"].get<std::string>().starts_with(prefix)) total += module[key].get<std::int64_t>();
  }
  return total;
}

TEST(Inspect, FullyConnectedLayersHoldTheParametersAndConvolutionsDoTheWork) {
  const Json modules = answer("inspect alexnet")["modules"];
  EXPECT_EQ(sum(modules, "classifier", "parameters"), 58631144);
  EXPECT_EQ(sum(modules, "features", "macs"), 655566528);
  EXPECT_EQ(sum(modules, "", "parameters"), 61100840);
}

TEST(Inspect, ChangedFieldsChangeTheShapes) {
  const Json said = answer("inspect gpt2 --set vocab_size=100 --set n_layer=2");
  EXPECT_EQ(said["layer_count"], 2);
  EXPECT_EQ(said["parameters"][0]["shape"], Json::array({100, 768}));
}

TEST(Models, KnownFamiliesAreCounted) {
  const Json said = answer("models --model-type llama");
  EXPECT_GT(said["models"].size(), 10U);
  for (const Json& model : said["models"]) {
    EXPECT_TRUE(model["partial"] || model["parameters"].is_number()) << model["name"];
  }
}

TEST(Gpus, AreSortedFromTheLargestDown) {
  std::int64_t before = INT64_MAX;
  const Json said = answer("gpus --sort usable --vendor nvidia");
  for (const Json& gpu : said["gpus"]) {
    EXPECT_LE(gpu["usable_bytes"], before);
    before = gpu["usable_bytes"];
  }
  EXPECT_LT(before, INT64_MAX);
}

}  // namespace
}  // namespace ullage
