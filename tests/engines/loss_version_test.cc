// Expected values are from the releases' own sources (src/transformers/models/*/modeling_*.py, loss/loss_utils.py).
#include "engines/pytorch/loss_version.h"

#include <gtest/gtest.h>

namespace ullage::engines::pytorch {
namespace {

struct Known {
  const char* family;
  const char* version;
  std::optional<LossForm> form;
};

constexpr Known kKnown[] = {
    {"llama", "4.30.2", LossForm::own_type}, {"llama", "4.31", LossForm::kept},
    {"llama", "4.45.0", LossForm::kept},     {"llama", "4.46", LossForm::sliced},
    {"llama", "4.48.3", LossForm::sliced},   {"llama", "4.49", LossForm::padded},
    {"llama", "5.12", LossForm::padded},     {"gpt2", "4.48", LossForm::own_type},
    {"gpt2", "4.49", LossForm::padded},      {"stablelm", "4.45", LossForm::own_type},
    {"granite", "4.46", LossForm::sliced},   {"granite", "4.45", std::nullopt},
    {"qwen3", "4.50", std::nullopt},         {"qwen3", "4.51", LossForm::padded},
    {"bert", "4.46", std::nullopt},          {"bert", "5.12", LossForm::padded},
    {"llama", "5.13", std::nullopt},         {"llama", "4.27", std::nullopt},
};

TEST(LossVersion, IsThatOfTheFamilysCode) {
  for (const Known& known : kKnown) {
    const auto version = parse_version(known.version);
    ASSERT_TRUE(version) << known.version;
    EXPECT_EQ(loss_form_of(known.family, *version), known.form) << known.family << " " << known.version;
  }
}

TEST(LossVersion, ReadsVersionsAndNothingElse) {
  EXPECT_EQ(parse_version("4.46.1"), (TransformersVersion{4, 46}));
  for (const char* text : {"", "4", "4.", ".4", "four", "4.x", "4.46rc1", "-4.46", "99999999999.1", "4,46"})
    EXPECT_FALSE(parse_version(text)) << text;
}

TEST(LossVersion, ReleasesGoByMonth) {
  EXPECT_FALSE(release_of_month(202303));
  EXPECT_EQ(release_of_month(202307), (TransformersVersion{4, 31}));
  EXPECT_EQ(release_of_month(202411), (TransformersVersion{4, 46}));
  EXPECT_EQ(to_string(*release_of_month(202412)), "4.47");
}

}  // namespace
}  // namespace ullage::engines::pytorch
