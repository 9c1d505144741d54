#include "speed/utilisation.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "speed/training_runs.h"

namespace ullage::speed {
namespace {

// GPT-3: 96 layers of width 12,288. Kaplan et al. and Brown et al. (arXiv:2005.14165, table D.1) give 6 FLOPs a
// parameter and token: 3.14e23 for 300e9 tokens of 174,600e6 parameters.
TEST(Utilisation, SixNIsWhatPapersCountByIt) {
  const ModelSize gpt3{174'600'000'000, 96, 12288};
  EXPECT_NEAR(six_n(gpt3, Rerun::nothing).model * 300e9, 3.14e23, 0.005e23);
}

TEST(Utilisation, AttentionAddsTwelveLayersWidthsAndLengths) {
  const ModelSize model{1'000'000, 3, 64};
  const TokenFlops flops = six_n_attention(model, 128, Rerun::nothing);
  EXPECT_DOUBLE_EQ(flops.model, 6e6 + 12.0 * 3 * 64 * 128);
  EXPECT_DOUBLE_EQ(flops.hardware, flops.model);
}

TEST(Utilisation, RecomputeAddsToTheHardwareOnly) {
  const ModelSize model{1'000'000, 3, 64};
  const double attention = 4.0 * 3 * 64 * 128;
  EXPECT_DOUBLE_EQ(six_n(model, Rerun::everything).hardware, 8e6);
  EXPECT_DOUBLE_EQ(six_n(model, Rerun::attention).hardware, 6e6);
  EXPECT_DOUBLE_EQ(six_n_attention(model, 128, Rerun::everything).hardware, 8e6 + 4 * attention);
  EXPECT_DOUBLE_EQ(six_n_attention(model, 128, Rerun::attention).hardware, 6e6 + 4 * attention);
  EXPECT_DOUBLE_EQ(six_n_attention(model, 128, Rerun::everything).model, 6e6 + 3 * attention);
}

TEST(Utilisation, APeakIsTwoForEachCoreAndCycle) { EXPECT_DOUBLE_EQ(core_flops(1280, 1.4e9), 3.584e12); }

TEST(Utilisation, PeaksAreThoseOfTheType) {
  const auto gpu = hardware::find_gpu("a100-sxm-80gb");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(peak_flops(*gpu, "bf16"), 312e12);
  EXPECT_EQ(peak_flops(*gpu, "fp32"), 19.5e12);
  EXPECT_EQ(peak_flops(*gpu, "fp8"), std::nullopt);
}

// arXiv:2302.13971, section 2.4: about 380 tokens a second on each of 2048 A100 for 65B; 1.4T tokens take 21 days.
TEST(TrainingRuns, ThroughputIsWhatThePaperSays) {
  const auto run = find_training_run("LLaMA-65B", "--reference");
  ASSERT_TRUE(run);
  EXPECT_NEAR(run->tokens_per_second_per_gpu, 380, 1);
  EXPECT_EQ(run->gpu, "a100-sxm-80gb");
}

TEST(TrainingRuns, EveryRunIsOnACardOfTheCatalogue) {
  for (const char* name : {"llama-7b", "llama-13b", "llama-33b", "llama-2-7b", "llama-2-13b", "llama-2-70b"}) {
    const auto run = find_training_run(name, "--reference");
    ASSERT_TRUE(run) << name;
    EXPECT_TRUE(hardware::find_gpu(run->gpu)) << name;
    EXPECT_GT(run->tokens_per_second_per_gpu, 100) << name;
  }
}

}  // namespace
}  // namespace ullage::speed
