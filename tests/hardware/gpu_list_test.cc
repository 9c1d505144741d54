#include "hardware/gpu_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"

namespace ullage::hardware {
namespace {

std::vector<Gpu> listed(const GpuFilter& filter, GpuSort order = GpuSort::id) {
  auto gpus = list_gpus(filter, order);
  EXPECT_TRUE(gpus);
  return gpus ? *gpus : std::vector<Gpu>{};
}

bool has(const std::vector<Gpu>& gpus, std::string_view id) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.id == id; });
}

TEST(ListGpus, FiltersByVendorAndMemory) {
  GpuFilter filter;
  filter.vendor = "nvidia";
  filter.min_memory_bytes = 24 * kGiB;
  filter.max_memory_bytes = 80 * kGiB;
  const auto gpus = listed(filter, GpuSort::memory);
  EXPECT_TRUE(has(gpus, "rtx-4090"));
  EXPECT_TRUE(has(gpus, "h100-sxm-80gb"));
  EXPECT_FALSE(has(gpus, "rtx-4080"));
  EXPECT_FALSE(has(gpus, "h200-sxm-141gb"));
  EXPECT_FALSE(has(gpus, "rx-7900-xtx"));
}

TEST(ListGpus, FiltersByAbility) {
  GpuFilter filter;
  filter.fp8 = true;
  filter.nvlink = true;
  EXPECT_TRUE(has(listed(filter), "h100-sxm-80gb"));
  EXPECT_FALSE(has(listed(filter), "a100-sxm-80gb"));
  EXPECT_FALSE(has(listed(filter), "rtx-4090"));
  GpuFilter ada;
  ada.architecture = "ada";
  ada.min_compute_capability = ComputeCapability{8, 9};
  EXPECT_TRUE(has(listed(ada), "l4"));
  EXPECT_FALSE(has(listed(ada), "h100-sxm-80gb"));
}

TEST(ListGpus, FiltersByText) {
  GpuFilter filter;
  filter.text = "MI300";
  const auto gpus = listed(filter);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].id, "mi300a");
  EXPECT_EQ(gpus[1].id, "mi300x");
}

TEST(ListGpus, SortsFromTheLargestWithUnknownLast) {
  const auto gpus = listed({}, GpuSort::bandwidth);
  for (std::size_t i = 1; i < gpus.size(); ++i) {
    EXPECT_GE(gpus[i - 1].memory_bandwidth_bytes_per_s.value_or(-1), gpus[i].memory_bandwidth_bytes_per_s.value_or(-1));
  }
  EXPECT_TRUE(gpus.front().memory_bandwidth_bytes_per_s);
  EXPECT_FALSE(gpus.back().memory_bandwidth_bytes_per_s);
}

TEST(ListGpus, EqualOnesStayInTheOrderOfIds) {
  const auto gpus = listed({}, GpuSort::year);
  for (std::size_t i = 1; i < gpus.size(); ++i) {
    EXPECT_TRUE(gpus[i - 1].year != gpus[i].year || gpus[i - 1].id < gpus[i].id) << gpus[i].id;
  }
}

TEST(ListGpus, ReadsTheNameOfAnOrder) {
  EXPECT_EQ(*parse_gpu_sort("Memory", "--sort"), GpuSort::memory);
  EXPECT_EQ(*parse_gpu_sort("name", "--sort"), GpuSort::id);
  EXPECT_EQ(to_string(parse_gpu_sort("size", "--sort").error()),
            "--sort: cannot sort by 'size'; choose one of id, name, memory, usable, bandwidth, bf16, year, tdp");
}

}  // namespace
}  // namespace ullage::hardware
