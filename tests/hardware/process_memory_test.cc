#include "hardware/process_memory.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "data/process_memory.h"
#include "hardware/catalogue.h"
#include "hardware/gpu_list.h"

namespace ullage::hardware {
namespace {

void expect_measured(const MeasuredBytes& measured, const std::string& id) {
  EXPECT_GT(measured.low_bytes, 0) << id;
  EXPECT_LE(measured.low_bytes, measured.bytes) << id;
  EXPECT_LE(measured.bytes, measured.high_bytes) << id;
  EXPECT_FALSE(measured.source.empty()) << id;
}

void expect_complete(const Gpu* gpu) {
  const std::string id = gpu == nullptr ? "none" : gpu->id;
  const auto read = parse_process_memory(data::process_memory(), gpu);
  ASSERT_TRUE(read) << to_string(read.error());
  expect_measured(read->context, id);
  expect_measured(read->libraries, id);
  EXPECT_GT(read->cublas_workspace_bytes, 0) << id;
  EXPECT_FALSE(read->cublas_workspace_source.empty()) << id;
}

TEST(ProcessMemory, EveryCardHasARowOfEachPart) {
  expect_complete(nullptr);
  const auto gpus = list_gpus();
  ASSERT_TRUE(gpus);
  for (const Gpu& gpu : *gpus) expect_complete(&gpu);
}

ProcessMemory of(const char* name) {
  const Gpu gpu = find_gpu(name).value();
  return process_memory(&gpu);
}

TEST(ProcessMemory, HopperHasLargerWorkspaces) {
  EXPECT_EQ(of("h100-sxm-80gb").cublas_workspace_bytes, 32 * kMiB);
  EXPECT_EQ(of("a100-sxm-80gb").cublas_workspace_bytes, 8519680);
  EXPECT_EQ(process_memory(nullptr).cublas_workspace_bytes, 8519680);
}

TEST(ProcessMemory, OtherVendorsAreGuessed) {
  EXPECT_TRUE(of("mi300x").context.guess);
  EXPECT_FALSE(of("rtx-4090").context.guess);
}

TEST(ProcessMemory, WrongRowsAreNamed) {
  EXPECT_EQ(to_string(parse_process_memory(R"({"part":"colour","mib":[1,2,3]})", nullptr).error()),
            "process_memory: part: no such part");
  EXPECT_EQ(to_string(parse_process_memory(R"({"part":"context","mib":[1,2]})", nullptr).error()),
            "process_memory: mib: expected three numbers: low, middle, high");
}

}  // namespace
}  // namespace ullage::hardware
