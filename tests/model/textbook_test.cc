// The figures of courses, interviews and papers come out of the formulas that they state.
#include "model/textbook.h"

#include <gtest/gtest.h>

#include "base/lines.h"
#include "data/sizes.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::model::textbook {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

TEST(Textbook, SizesAreRead) {
  EXPECT_EQ(bare_size("7B"), 7e9);
  EXPECT_EQ(bare_size("1.5b"), 1.5e9);
  EXPECT_EQ(bare_size("350M"), 350e6);
  EXPECT_EQ(bare_size("1T"), 1e12);
  for (const char* text : {"", "B", "7", ".5B", "1.2.3B", "7BB", "-7B", "0B", "gpt2", "123456789012B"}) {
    EXPECT_EQ(bare_size(text), std::nullopt) << text;
  }
}

TEST(Textbook, WeightsAreParametersTimesBits) {
  EXPECT_NEAR(weights(7e9, 32) / kGibibyte, 26.08, 0.005);
  EXPECT_NEAR(weights(11e9, 32) / kGibibyte, 41, 0.05);
  EXPECT_DOUBLE_EQ(weights(13e9, 32), 52e9);
  EXPECT_DOUBLE_EQ(weights(13e9, 16) * kServingThreeTenths, 33.8e9);
  EXPECT_DOUBLE_EQ(weights(13e9, 8) * kServingThreeTenths, 16.9e9);
  EXPECT_DOUBLE_EQ(weights(70e9, 4) * kServingThreeTenths, 45.5e9);
  EXPECT_DOUBLE_EQ(weights(70e9, 16) * kServingFifth, 168e9);
}

TEST(Textbook, CardsHoldWeightsByTheirPrintedSize) { EXPECT_EQ(cards(weights(65e9, 16), 32), 5); }

TEST(Textbook, AnInt8StepOfSixBillionIsFourUnitsAndKernels) {
  EXPECT_DOUBLE_EQ(training_units(6e9, 8) + kCourseKernelBytes, 25.3e9);
  const Shape shape{32, 4096, 32, 11008};
  EXPECT_DOUBLE_EQ(course_activations(shape, 2048, 8), (4096.0 + 11008) * 2048 * 32);
  EXPECT_NEAR(course_activations(shape, 2048, 8), 990e6, 0.5e6);
}

// arXiv:1910.02054, figure 1: 7.5 billion parameters on 64 GPUs.
TEST(Textbook, ZeroIsThePapersTable) {
  EXPECT_NEAR(zero_stage(7.5e9, 64, 0), 120e9, 0.05e9);
  EXPECT_NEAR(zero_stage(7.5e9, 64, 1), 31.4e9, 0.05e9);
  EXPECT_NEAR(zero_stage(7.5e9, 64, 2), 16.6e9, 0.05e9);
  EXPECT_NEAR(zero_stage(7.5e9, 64, 3), 1.9e9, 0.05e9);
}

TEST(Textbook, AnAdapterHasRankTimesBothSides) { EXPECT_EQ(lora_parameters(1024, 512, 8), 12288); }

// Two examples of MindIE's users: 40 GiB for a model of 57,344 bytes a token, 34 GiB for one of 131,072.
TEST(Textbook, CacheBlocksAreMindies) {
  EXPECT_EQ(cache_blocks(40LL << 30, 128, 57344), 5851);
  EXPECT_EQ(5851 / request_blocks(1024, 1024, 128), 365);
  EXPECT_EQ(cache_blocks(34LL << 30, 128, 131072), 2176);
  EXPECT_EQ(2176 / request_blocks(60, 512, 128), 435);
  EXPECT_EQ(request_blocks(60, 346, 128), 4);
}

// GPT-3 in arXiv:2205.05198, table 3 and figure 1: 96 layers, h 12,288, 96 heads, s 2048: 5·a·s/h is 80.
TEST(Textbook, ActivationsAreThePapers) {
  const Shape gpt3{96, 12288, 96, 4 * 12288};
  EXPECT_DOUBLE_EQ(activations(gpt3, 1, 2048), 2048.0 * 12288 * 96 * (34 + 80));
  EXPECT_NEAR(layer_parameters(gpt3), 174e9, 0.1e9);
}

TEST(Textbook, SizesStandForModelsThatHaveThem) {
  int rows = 0;
  for_each_line(data::sizes(), [&](std::string_view line) {
    ++rows;
    const std::string_view name = quoted_after(line, "{\"model\":\"");
    const auto entry = find_model(name);
    ASSERT_TRUE(entry) << line;
    const auto architecture = build_architecture(entry->config, entry->name);
    ASSERT_TRUE(architecture) << line;
    EXPECT_NE(line.find("\"parameters\":" + std::to_string(parameter_count(*architecture)) + "}"),
              std::string_view::npos)
        << line;
    EXPECT_EQ(stand_in(static_cast<double>(parameter_count(*architecture))), name);
  });
  EXPECT_GT(rows, 20);
}

}  // namespace
}  // namespace ullage::model::textbook
