#include "model/ggml_type.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ullage::model {
namespace {

// tests/truth/record_ggml_types.py
TEST(GgmlType, AllAreAsTheGgufPackageHasThem) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA) + "/ggml-types.txt");
  std::size_t rows = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream row(line);
    std::uint32_t number = 0;
    std::string name;
    std::int64_t block = 0;
    std::int64_t bytes = 0;
    ASSERT_TRUE(row >> number >> name >> block >> bytes) << line;
    const GgmlLayout* layout = find_ggml_type(number);
    ASSERT_NE(layout, nullptr) << line;
    EXPECT_EQ(layout->name, name);
    EXPECT_EQ(layout->block, block) << name;
    EXPECT_EQ(layout->bytes_of_block, bytes) << name;
    ++rows;
  }
  EXPECT_EQ(rows, ggml_layouts().size());
}

TEST(GgmlType, IsFoundByNameInAnyCase) {
  EXPECT_EQ(find_ggml_type("q4_k"), &layout_of(GgmlType::q4_k));
  EXPECT_EQ(find_ggml_type("BF16"), &layout_of(GgmlType::bf16));
  EXPECT_EQ(find_ggml_type("Q4_K_M"), nullptr) << "a mixture of types";
  EXPECT_EQ(find_ggml_type(""), nullptr);
}

TEST(GgmlType, NumbersThatWereGivenUpAreNone) {
  for (const std::uint32_t number : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 4096U, 0xFFFFFFFFU})
    EXPECT_EQ(find_ggml_type(number), nullptr) << number;
}

TEST(GgmlType, RowsAreWholeBlocks) {
  EXPECT_EQ(row_bytes(layout_of(GgmlType::q4_k), 4096), 2304);
  EXPECT_EQ(row_bytes(layout_of(GgmlType::q8_0), 96), 102);
  EXPECT_EQ(row_bytes(layout_of(GgmlType::q8_0), 0), 0);
  EXPECT_EQ(row_bytes(layout_of(GgmlType::q8_0), 100), std::nullopt);
  EXPECT_EQ(row_bytes(layout_of(GgmlType::f32), -1), std::nullopt);
}

}  // namespace
}  // namespace ullage::model
