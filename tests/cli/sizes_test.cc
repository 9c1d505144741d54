// Dimensions of which the products pass what 64 bits count.
#include <gtest/gtest.h>

#include <string>

#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::run;

constexpr const char* kLlama = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";

TEST(Sizes, EveryDimensionAtItsLargestIsRefusedInsteadOfOverflowing) {
  const Captured captured = run(std::string("train ") + kLlama +
                                " --set hidden_size=16777216 --set intermediate_size=16777216 --set "
                                "num_hidden_layers=10000 --set num_attention_heads=64"
                                " --set num_key_value_heads=64 --set vocab_size=67108864");
  EXPECT_EQ(captured.status, 2) << captured.out.substr(0, 200);
  EXPECT_NE(captured.err.find("more than can be counted"), std::string::npos) << captured.err;
}

TEST(Sizes, ALargeBatchOfLongSequencesIsRefusedInsteadOfOverflowing) {
  const Captured captured = run(std::string("train ") + kLlama + " --micro-batch 1048576 --seq-len 67108864");
  EXPECT_EQ(captured.status, 2);
  EXPECT_EQ(
      captured.err,
      "ullage: --seq-len: 1048576 sequences of 67108864 tokens through 22 layers take more than can be counted; use a "
      "smaller micro-batch or shorter sequences\n");
}

}  // namespace
}  // namespace ullage
