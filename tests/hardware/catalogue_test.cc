#include "hardware/catalogue.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::hardware {
namespace {

std::string id(std::string_view name) {
  const auto found = find_gpu(name);
  return found ? found->id : to_string(found.error());
}

std::string groups(std::string_view text, std::optional<std::int64_t> total = std::nullopt) {
  const auto set = find_devices(text, total);
  if (!set) return to_string(set.error());
  std::string out;
  for (const DeviceGroup& group : set->groups) out += std::to_string(group.count) + "x" + group.gpu.id + " ";
  return out + "= " + std::to_string(set->count());
}

TEST(FindGpu, ByIdAliasAndProductName) {
  const struct {
    std::string_view name, id;
  } rows[] = {
      {"h100-sxm-80gb", "h100-sxm-80gb"},
      {"h100", "h100-sxm-80gb"},
      {"H100", "h100-sxm-80gb"},
      {"a100-80gb", "a100-sxm-80gb"},
      {"rtx-4090", "rtx-4090"},
      {"RTX 4090", "rtx-4090"},
      {"rtx4090", "rtx-4090"},
      {"4090", "rtx-4090"},
      {"910b", "ascend-910b3"},
      {"6700xt", "rx-6700-xt"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"},
      {"v100-sxm-16gb", "v100-sxm2-16gb"},
      {"h20-141gb", "h20-141gb"},
  };
  for (const auto& row : rows) EXPECT_EQ(id(row.name), row.id) << row.name;
}

TEST(FindGpu, UnknownNamesTheNearest) {
  EXPECT_EQ(id("h1000").rfind("--gpu: no GPU named 'h1000'; did you mean h100", 0), 0u) << id("h1000");
  EXPECT_EQ(id("zzzzzzzzzzzzzz"), "--gpu: no GPU named 'zzzzzzzzzzzzzz'; `ullage gpus` lists all");
  EXPECT_EQ(find_gpu("nothing").error().code, ErrorCode::not_found);
}

TEST(FindGpu, SurvivesStrangeNames) {
  for (const std::string& name : {std::string(), std::string("-"), std::string("\""), std::string("nvidia"),
                                  std::string("\n"), std::string(1 << 20, 'h'), std::string(3, '\0')}) {
    const auto found = find_gpu(name);
    ASSERT_FALSE(found);
    EXPECT_LT(to_string(found.error()).size(), 300u);
  }
}

TEST(FindDevices, ReadsCountsAndLists) {
  EXPECT_EQ(groups("h100"), "1xh100-sxm-80gb = 1");
  EXPECT_EQ(groups("8xh100"), "8xh100-sxm-80gb = 8");
  EXPECT_EQ(groups("8Xh100"), "8xh100-sxm-80gb = 8");
  EXPECT_EQ(groups("rtx-4090,rtx-3090"), "1xrtx-4090 1xrtx-3090 = 2");
  EXPECT_EQ(groups("2x4090,3090"), "2xrtx-4090 1xrtx-3090 = 3");
  EXPECT_EQ(groups("6700xt"), "1xrx-6700-xt = 1");
  EXPECT_EQ(groups("4x6700xt"), "4xrx-6700-xt = 4");
}

TEST(FindDevices, TheTotalMultipliesOneCardOrMustAgree) {
  EXPECT_EQ(groups("h100", 8), "8xh100-sxm-80gb = 8");
  EXPECT_EQ(groups("8xh100", 8), "8xh100-sxm-80gb = 8");
  EXPECT_EQ(groups("4xh100", 8), "--gpu: '4xh100' names 4 devices but --gpus says 8; drop one of the two");
  EXPECT_EQ(groups("4090,3090", 2), "1xrtx-4090 1xrtx-3090 = 2");
  EXPECT_EQ(groups("4090,3090", 4), "--gpu: '4090,3090' names 2 devices but --gpus says 4; drop one of the two");
}

TEST(FindDevices, RefusesNonsense) {
  EXPECT_EQ(groups("0xh100"), "--gpu: '0xh100' names 0 devices; expected 1 to 1000000");
  EXPECT_EQ(groups("99999999999999999999999xh100"),
            "--gpu: '99999999999999999999999xh100' names 99999999999999999999999 devices; expected 1 to 1000000");
  EXPECT_EQ(groups("h100", 0), "--gpu: 0 devices in all; expected 1 to 1000000");
  for (std::string_view text : {"", ",", "h100,", ",h100", "8x", "x", "-1xh100", "8xh100x", "8x8xh100"}) {
    EXPECT_FALSE(find_devices(text)) << text;
  }
}

}  // namespace
}  // namespace ullage::hardware
