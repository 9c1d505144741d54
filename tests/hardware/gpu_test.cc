#include "hardware/gpu.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"

namespace ullage::hardware {
namespace {

Gpu card(std::string_view name) {
  auto found = find_gpu(name);
  EXPECT_TRUE(found) << to_string(found.error());
  return found ? *found : Gpu{};
}

TEST(ComputeCapability, ReadsMajorAndMinor) {
  EXPECT_EQ(parse_compute_capability("8.9"), (ComputeCapability{8, 9}));
  EXPECT_EQ(parse_compute_capability("12.0"), (ComputeCapability{12, 0}));
  EXPECT_LT((ComputeCapability{8, 9}), (ComputeCapability{10, 0}));
  EXPECT_EQ(to_string(ComputeCapability{10, 3}), "10.3");
}

TEST(ComputeCapability, RefusesAnythingElse) {
  for (std::string_view text : {"", ".", "8", "8.", ".9", "8.9x", "gfx942", "-8.0", "8.-1", "99999999999.0"}) {
    EXPECT_FALSE(parse_compute_capability(text)) << text;
  }
}

TEST(Abilities, FollowTheComputeCapability) {
  const struct {
    std::string_view gpu;
    Support bf16, fp8, flash_attention_2, nvlink;
  } rows[] = {
      {"v100-sxm2-32gb", Support::no, Support::no, Support::no, Support::yes},
      {"t4", Support::no, Support::no, Support::no, Support::no},
      {"a100-sxm-80gb", Support::yes, Support::no, Support::yes, Support::yes},
      {"rtx-3090", Support::yes, Support::no, Support::yes, Support::yes},
      {"rtx-4090", Support::yes, Support::yes, Support::yes, Support::no},
      {"h100-sxm-80gb", Support::yes, Support::yes, Support::yes, Support::yes},
      {"b200", Support::yes, Support::yes, Support::yes, Support::yes},
  };
  for (const auto& row : rows) {
    const Gpu gpu = card(row.gpu);
    EXPECT_EQ(supports_bf16(gpu), row.bf16) << row.gpu;
    EXPECT_EQ(supports_fp8(gpu), row.fp8) << row.gpu;
    EXPECT_EQ(supports_flash_attention_2(gpu), row.flash_attention_2) << row.gpu;
    EXPECT_EQ(has_nvlink(gpu), row.nvlink) << row.gpu;
  }
}

TEST(Abilities, OfOtherVendorsFollowPublishedRates) {
  const Gpu amd = card("mi300x");
  EXPECT_EQ(supports_bf16(amd), Support::yes);
  EXPECT_EQ(supports_flash_attention_2(amd), Support::unknown);
  EXPECT_EQ(has_nvlink(amd), Support::no) << "its links are Infinity Fabric";
  EXPECT_EQ(supports_fp8(card("mi60")), Support::unknown);
}

TEST(Usable, TheUsersWordWins) {
  Gpu gpu = card("h100");
  set_usable(gpu, 1000);
  EXPECT_EQ(gpu.usable_bytes, 1000);
  EXPECT_EQ(gpu.usable_range_bytes.low, 1000);
  EXPECT_EQ(gpu.usable_range_bytes.high, 1000);
  EXPECT_EQ(gpu.usable_basis, UsableBasis::given);
}

TEST(Usable, WhatOthersUseIsTakenOffAndStopsAtZero) {
  Gpu gpu = card("h100");
  const ByteRange before = gpu.usable_range_bytes;
  take_used(gpu, 1'000'000);
  EXPECT_EQ(gpu.usable_bytes, 85'018'279'936 - 1'000'000);
  EXPECT_EQ(gpu.usable_range_bytes.low, before.low - 1'000'000);
  take_used(gpu, 200'000'000'000);
  EXPECT_EQ(gpu.usable_bytes, 0);
  EXPECT_EQ(gpu.usable_range_bytes.high, 0);
}

}  // namespace
}  // namespace ullage::hardware
