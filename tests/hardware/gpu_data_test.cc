// What stands in data/gpus.jsonl and data/usable_memory.jsonl.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/bytes.h"
#include "base/lines.h"
#include "hardware/catalogue.h"
#include "hardware/gpu_list.h"
#include "hardware/usable_memory.h"

namespace ullage::hardware {
namespace {

const std::vector<Gpu>& all() {
  static const std::vector<Gpu> gpus = [] {
    auto listed = list_gpus();
    EXPECT_TRUE(listed) << to_string(listed.error());
    return listed ? *listed : std::vector<Gpu>{};
  }();
  return gpus;
}

std::string file_text(const std::string& path) {
  std::ifstream in(std::string(ULLAGE_SOURCE_DIR) + "/" + path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(GpuData, IsCompiledInByteForByte) {
  EXPECT_EQ(built_in_gpus().gpus, file_text("data/gpus.jsonl"));
  EXPECT_EQ(built_in_gpus().usable_memory, file_text("data/usable_memory.jsonl"));
}

TEST(GpuData, EveryLineIsACardAndTheyAreSorted) {
  std::size_t lines = 0;
  for_each_line(built_in_gpus().gpus, [&](std::string_view) { ++lines; });
  ASSERT_EQ(all().size(), lines);
  EXPECT_EQ(lines, 203u) << "195 rows of the datasheets' table and 8 of the other alone";
  EXPECT_TRUE(std::is_sorted(all().begin(), all().end(), [](const Gpu& a, const Gpu& b) { return a.id < b.id; }));
}

TEST(GpuData, IdsAliasesAndProductNamesAreUnique) {
  std::map<std::string, std::string> owner;
  for (const Gpu& gpu : all()) {
    std::vector<std::string> names = gpu.aliases;
    names.push_back(gpu.id);
    for (const std::string& name : names) EXPECT_TRUE(owner.emplace(name, gpu.id).second) << name;
  }
  for (const Gpu& gpu : all()) {
    const auto found = find_gpu(gpu.name);
    ASSERT_TRUE(found) << gpu.name;
    EXPECT_EQ(found->id, gpu.id) << gpu.name;
  }
}

TEST(GpuData, EveryIdAndAliasIsFound) {
  for (const Gpu& gpu : all()) {
    ASSERT_TRUE(find_gpu(gpu.id)) << gpu.id;
    EXPECT_EQ(find_gpu(gpu.id)->id, gpu.id);
    for (const std::string& alias : gpu.aliases) {
      ASSERT_TRUE(find_gpu(alias)) << alias;
      EXPECT_EQ(find_gpu(alias)->id, gpu.id) << alias;
    }
  }
}

TEST(GpuData, SizesArePlausible) {
  for (const Gpu& gpu : all()) {
    EXPECT_GE(gpu.datasheet_bytes, 6 * kGiB) << gpu.id;
    EXPECT_LE(gpu.datasheet_bytes, 600 * kGiB) << gpu.id;
    EXPECT_GT(gpu.usable_bytes, gpu.datasheet_bytes * 45 / 100) << gpu.id;
    EXPECT_LE(gpu.usable_bytes, gpu.datasheet_bytes) << gpu.id;
    EXPECT_LE(gpu.usable_range_bytes.low, gpu.usable_bytes) << gpu.id;
    EXPECT_GE(gpu.usable_range_bytes.high, gpu.usable_bytes) << gpu.id;
    EXPECT_LE(gpu.usable_range_bytes.high, gpu.memory_bytes) << gpu.id;
    EXPECT_FALSE(gpu.usable_source.empty()) << gpu.id;
  }
}

TEST(GpuData, KnownTotals) {
  // Kineto traces and deviceQuery output; the sources stand in the rows.
  const struct {
    std::string_view id;
    std::int64_t total_bytes;
  } rows[] = {
      {"h100-sxm-80gb", 85'018'279'936},   {"a100-sxm-80gb", 84'990'623'744},  {"a100-sxm-40gb", 42'298'834'944},
      {"b200-sxm-180gb", 191'503'138'816}, {"v100-sxm2-32gb", 34'089'730'048}, {"mi300x", 206'141'652'992},
      {"mi250", 68'702'699'520},
  };
  for (const auto& row : rows) {
    const auto gpu = find_gpu(row.id);
    ASSERT_TRUE(gpu);
    EXPECT_EQ(gpu->usable_bytes, row.total_bytes) << row.id;
    EXPECT_EQ(gpu->usable_basis, UsableBasis::runtime_total) << row.id;
  }
}

TEST(GpuData, ARangeHoldsEveryTotalSeenOnLinux) {
  const auto h100 = find_gpu("h100");  // 79.10 and 79.11 GiB were printed besides 85,018,279,936
  EXPECT_NEAR(static_cast<double>(h100->usable_range_bytes.low), 79.095 * static_cast<double>(kGiB), 2);
  EXPECT_EQ(h100->usable_range_bytes.high, 85'018'279'936);
  const auto consumer = find_gpu("rtx-3090");  // 24.00 GiB was seen on Windows only
  EXPECT_LT(consumer->usable_range_bytes.high, static_cast<std::int64_t>(23.7 * static_cast<double>(kGiB)));
}

TEST(GpuData, ATotalFromWindowsHasTheLinuxRuleBelowIt) {
  const auto gpu = find_gpu("rtx-3080-ti");
  EXPECT_EQ(gpu->usable_bytes, 12 * kGiB);
  EXPECT_LT(gpu->usable_range_bytes.low, 12 * kGiB * 96 / 100);
}

TEST(GpuData, RecalledCellsStayMarked) {
  const auto h100 = find_gpu("h100");
  EXPECT_TRUE(is_recalled(*h100, "link_domain"));
  EXPECT_FALSE(is_recalled(*h100, "bf16_tflops"));
  EXPECT_TRUE(is_recalled(*find_gpu("v100-sxm2-32gb"), "nvidia_smi_total_mib"));
  EXPECT_TRUE(is_recalled(*find_gpu("k80"), "datasheet_gb"));
  const auto marked = std::count_if(all().begin(), all().end(), [](const Gpu& gpu) { return !gpu.recalled.empty(); });
  EXPECT_GE(marked, 190);
}

TEST(GpuData, ABoardOfTwoDevicesIsDescribedPerDevice) {
  const auto gpu = find_gpu("mi250x");
  EXPECT_EQ(gpu->devices_per_card, 2);
  EXPECT_EQ(gpu->datasheet_bytes, 64 * kGiB);
  EXPECT_NEAR(*gpu->peak.bf16_tflops, 191.5, 0.01) << "torchtitan counts 191.5 per die";
}

// The cards a rule was made from, with their own totals hidden from it.
TEST(UsableRules, HoldTheCardsTheyWereMadeFrom) {
  const auto rules = parse_usable_rules(built_in_gpus().usable_memory);
  ASSERT_TRUE(rules);
  int checked = 0;
  for_each_line(built_in_gpus().usable_memory, [&](std::string_view line) {
    const auto rule = parse_json(line, "rule");
    ASSERT_TRUE(rule);
    for (const Json& id : (*rule)["rows"]) {
      Gpu gpu = *find_gpu(id.get<std::string>());
      const std::int64_t total = gpu.runtime_total_bytes.value();
      gpu.runtime_total_bytes.reset();
      decide_usable(gpu, false, {}, *rules);
      // A V100's old driver leaves its part out of nvidia-smi's total too; it helps to make another rule.
      if (!gpu.usable_source.starts_with((*rule)["name"].get<std::string>())) continue;
      EXPECT_LE(gpu.usable_range_bytes.low, total + kMiB) << gpu.id;
      EXPECT_GE(gpu.usable_range_bytes.high, total - kMiB) << gpu.id;
      ++checked;
    }
  });
  EXPECT_GE(checked, 40);
}

TEST(UsableRules, AnUnknownKindIsAGuess) {
  EXPECT_EQ(find_gpu("gaudi-3")->usable_basis, UsableBasis::guess);
  EXPECT_EQ(find_gpu("a40")->usable_basis, UsableBasis::nvidia_smi_rule);
  EXPECT_EQ(find_gpu("l20")->usable_basis, UsableBasis::datasheet_rule);
  EXPECT_EQ(find_gpu("rx-7900-xtx")->usable_bytes, 24 * kGiB - 16 * kMiB);
  EXPECT_NEAR(static_cast<double>(find_gpu("m2-max")->usable_bytes), 73728.0 * static_cast<double>(kMiB), 1);
}

TEST(UsableRules, BrokenRulesAreErrors) {
  EXPECT_FALSE(parse_usable_rules("{\"name\":\"x\"}\n"));
  EXPECT_FALSE(parse_usable_rules("{\"ratio\":[1,2],\"gap_mib\":[0,0,0]}"));
  EXPECT_FALSE(parse_usable_rules("{\"ratio\":[1,2,\"3\"],\"gap_mib\":[0,0,0]}"));
  EXPECT_FALSE(parse_usable_rules("not json"));
  EXPECT_TRUE(parse_usable_rules(""));
}

}  // namespace
}  // namespace ullage::hardware
