#include "hardware/local.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/bytes.h"

namespace ullage::hardware {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

LocalDevice rtx_4090() {
  LocalDevice out;
  out.name = "NVIDIA GeForce RTX 4090";
  out.driver = "535.129.03";
  out.compute_capability = ComputeCapability{8, 9};
  out.total_bytes = 24564 * kMib;
  out.reserved_bytes = 346 * kMib;
  out.used_bytes = 1200 * kMib;
  out.power_limit_w = 450;
  return out;
}

TEST(Local, TakesTheDriversMemoryForACardOfTheCatalogue) {
  const auto gpu = describe(rtx_4090());
  ASSERT_TRUE(gpu) << to_string(gpu.error());
  EXPECT_EQ(gpu->id, "rtx-4090");
  EXPECT_EQ(gpu->usable_bytes, (24564 - 346) * kMib);
  EXPECT_EQ(gpu->usable_basis, UsableBasis::driver);
  EXPECT_EQ(gpu->usable_source, "NVML, driver 535.129.03");
  EXPECT_TRUE(gpu->memory_bandwidth_bytes_per_s.has_value());
}

TEST(Local, KeepsTheCataloguesFigureWhereTheDriverDoesNotTellWhatItKeeps) {
  LocalDevice device = rtx_4090();
  device.reserved_bytes = 0;
  const auto gpu = describe(device);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->usable_bytes, find_gpu("rtx-4090")->usable_bytes);
  EXPECT_NE(gpu->usable_basis, UsableBasis::driver);
}

TEST(Local, BelievesTheDriverThatACardIsSmaller) {
  LocalDevice device = rtx_4090();
  device.total_bytes = 12000 * kMib;
  device.reserved_bytes = 0;
  const auto gpu = describe(device);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->usable_bytes, 12000 * kMib);
}

TEST(Local, DescribesACardThatNoCatalogueKnows) {
  LocalDevice device = rtx_4090();
  device.name = "NVIDIA Unheard-of 9000";
  const auto gpu = describe(device);
  ASSERT_TRUE(gpu) << to_string(gpu.error());
  EXPECT_EQ(gpu->name, "NVIDIA Unheard-of 9000");
  EXPECT_EQ(gpu->usable_bytes, (24564 - 346) * kMib);
  EXPECT_EQ(gpu->tdp_w, 450);
  EXPECT_FALSE(gpu->memory_bandwidth_bytes_per_s.has_value());
}

// The library beside the tests answers to the driver's name once it is loaded.
class Driver : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(ULLAGE_PRETEND_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    unsetenv("PRETEND_NVML");
    dlclose(library_);
  }
  void* library_ = nullptr;
};

TEST_F(Driver, IsAskedForEachCard) {
  const auto devices = local_devices();
  ASSERT_TRUE(devices) << to_string(devices.error());
  ASSERT_EQ(devices->size(), 2U);
  const LocalDevice& first = devices->front();
  EXPECT_EQ(first.name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(first.driver, "535.129.03");
  EXPECT_EQ(first.compute_capability, (ComputeCapability{8, 9}));
  EXPECT_EQ(first.total_bytes, 24564 * kMib);
  EXPECT_EQ(first.reserved_bytes, 346 * kMib);
  EXPECT_EQ(first.used_bytes, 1200 * kMib);
  EXPECT_EQ(first.power_limit_w, 450);
  EXPECT_EQ(devices->back().index, 1);
}

TEST_F(Driver, MayBeTooOldToTellWhatItKeeps) {
  setenv("PRETEND_NVML", "old", 1);
  const auto devices = local_devices();
  ASSERT_TRUE(devices) << to_string(devices.error());
  EXPECT_EQ(devices->front().total_bytes, 24564 * kMib);
  EXPECT_EQ(devices->front().reserved_bytes, 0);
}

TEST_F(Driver, SaysInOneLineWhatIsWrong) {
  setenv("PRETEND_NVML", "lost", 1);
  const auto lost = local_devices();
  ASSERT_FALSE(lost);
  EXPECT_EQ(to_string(lost.error()),
            "--gpu local: the driver answers nvmlDeviceGetHandleByIndex_v2 with 'GPU is lost'; name the card instead "
            "(`ullage gpus` lists all)");
  setenv("PRETEND_NVML", "none", 1);
  const auto none = local_devices();
  ASSERT_FALSE(none);
  EXPECT_EQ(to_string(none.error()),
            "--gpu local: the driver shows no card; name one instead (`ullage gpus` lists all)");
}

}  // namespace
}  // namespace ullage::hardware
