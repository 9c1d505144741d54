#include "report/inspection.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/family.h"

namespace ullage::report {
namespace {

namespace pt = engines::pytorch;

// 32 x 3 x 256 x 256 x 4 bytes are 24 MiB.
TEST(InspectTensor, CountsElementsAndBytes) {
  const auto tensor = inspect_tensor("32x3x256x256", DType::f32, "--tensor");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->elements, 6291456);
  EXPECT_EQ(tensor->bytes, 24 * kMiB);
  EXPECT_EQ(tensor->allocated_bytes, 24 * kMiB);
  EXPECT_EQ(tensor->shape, (std::vector<std::int64_t>{32, 3, 256, 256}));
}

TEST(InspectTensor, TheAllocatorRoundsToBlocksOf512) {
  const auto tensor = inspect_tensor("3", DType::bf16, "--tensor");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->bytes, 6);
  EXPECT_EQ(tensor->allocated_bytes, 512);
}

class BadShape : public ::testing::TestWithParam<const char*> {};

TEST_P(BadShape, IsRefusedWithItsPlace) {
  const auto tensor = inspect_tensor(GetParam(), DType::f32, "--tensor");
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().where, "--tensor");
}

INSTANTIATE_TEST_SUITE_P(All, BadShape,
                         ::testing::Values("", "x", "3x", "x3", "3xx3", "0x3", "-1x3", "3,4", "3x4 ", "1.5",
                                           "99999999999999999999", "4611686018427387904x4611686018427387904",
                                           "9223372036854775807x2"));

// By hand: a layer has q and o of 8x8, k and v of 4x8, three feed-forward matrices of 16x8 and two norms of 8.
TEST(Inspect, CountsParametersAndMultiplyAccumulates) {
  const auto config = parse_json(R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 16,
      "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64})",
                                 "c");
  ASSERT_TRUE(config);
  const auto architecture = model::build_architecture(*config, "c");
  ASSERT_TRUE(architecture);
  pt::TrainOptions options;
  options.seq_len = 6;
  options.step = pt::Step::forward;
  options.loss = pt::Loss::none;
  options.optimizer = pt::Optimizer::none;
  const auto run = pt::run_train_step(*architecture, options);
  ASSERT_TRUE(run);
  const Inspection inspection = inspect(*architecture, options, &*run);
  const std::int64_t products = 2 * 64 + 2 * 32 + 3 * 128;
  EXPECT_EQ(inspection.model.parameters, 3 * (products + 16) + 2 * 80 + 8);
  std::int64_t by_module = 0;
  std::int64_t linear_macs = 0;
  for (const ModuleLine& line : inspection.modules) {
    by_module += line.parameters;
    if (line.name.ends_with("_proj") || line.name == "lm_head") linear_macs += line.macs;
  }
  EXPECT_EQ(by_module, inspection.model.parameters);
  EXPECT_EQ(linear_macs, 6 * (3 * products + 80));
  // Scores and their product with the values: 2 heads of 4 dimensions over all pairs of tokens, in 3 layers, whole or
  // only the lower half.
  const std::int64_t attention = inspection.macs.value_or(0) - linear_macs;
  EXPECT_LE(attention, 3 * 2 * (2 * 4 * 36));
  EXPECT_GE(attention, 3 * 2 * (2 * 4 * 36) / 2);
}

}  // namespace
}  // namespace ullage::report
