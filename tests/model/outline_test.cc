// Outlines hold what the published classes register: names and shapes as a set, stored buffers too
// (tests/truth/record_outlines.py). What transformers does not have is held to the totals that its publishers'
// checkpoints state.
#include "model/outline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/lines.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::model {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(ULLAGE_TEST_DATA) / "outlines";

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// "0-2,5" as numbers.
std::vector<int> numbers_of(const std::string& ranges) {
  std::vector<int> out;
  std::istringstream in(ranges);
  for (std::string range; std::getline(in, range, ',');) {
    const std::size_t dash = range.find('-');
    const int last = std::stoi(dash == std::string::npos ? range : range.substr(dash + 1));
    for (int i = std::stoi(range); i <= last; ++i) out.push_back(i);
  }
  return out;
}

// "name sizes…" of every tensor that a recording lists.
std::vector<std::string> recorded(const std::string& text) {
  std::vector<std::string> out;
  for_each_line(text, [&](std::string_view line) {
    const std::string row(line);
    const std::size_t colon = row.find(" :");
    const std::size_t space = std::min(row.find(' '), colon);
    const std::string sizes = row.substr(space, colon - space);
    const std::string name = row.substr(0, space);
    const std::string ranges = colon + 3 <= row.size() ? row.substr(colon + 3) : "";
    if (ranges.empty()) out.push_back(name + sizes);
    for (const int number : numbers_of(ranges)) {
      std::string full = name;
      full.replace(full.find('*'), 1, std::to_string(number));
      out.push_back(full + sizes);
    }
  });
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> ours(const Architecture& arch) {
  std::vector<std::string> out;
  for_each_parameter(arch, [&](const Parameter& parameter, const std::string& name, int) {
    if (parameter.tied_to) return;
    std::string& row = out.emplace_back(name);
    for (const Dimension& dim : parameter.dims) row.append(" ").append(std::to_string(dim.size()));
  });
  const auto add = [&](const std::string& at, const std::vector<Buffer>& buffers) {
    for (const Buffer& buffer : buffers) {
      if (!buffer.persistent) continue;
      std::string& row = out.emplace_back("~" + at + buffer.name);
      for (const std::int64_t size : buffer.sizes) row.append(" ").append(std::to_string(size));
    }
  };
  add("", arch.buffers);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i)
    add(arch.layer_prefix + std::to_string(i) + ".", arch.kind_of(i).buffers);
  std::sort(out.begin(), out.end());
  return out;
}

Expected<Architecture> built(const fs::path& recording) {
  fs::path own = recording;
  own.replace_extension(".json");
  const std::string stem = recording.stem().string();
  if (fs::exists(own)) {
    return parse_json(content(own), stem).and_then([&](const Json& config) { return build_outline(config, stem); });
  }
  std::string name = stem;
  for (std::size_t at; (at = name.find("__")) != std::string::npos;) name.replace(at, 2, "/");
  return find_model(name).and_then([](const CatalogueEntry& entry) { return build_outline(entry.config, entry.name); });
}

std::vector<fs::path> recordings() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(kData)) {
    if (entry.path().extension() == ".outline") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string first_lines(const std::vector<std::string>& rows) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 6); ++i) out += "\n  " + rows[i];
  return out;
}

class OutlineTensors : public ::testing::TestWithParam<fs::path> {};

TEST_P(OutlineTensors, AreThoseOfThePublishedClass) {
  const auto arch = built(GetParam());
  ASSERT_TRUE(arch) << to_string(arch.error());
  const std::vector<std::string> wanted = recorded(content(GetParam()));
  const std::vector<std::string> have = ours(*arch);
  std::vector<std::string> lacks, extra;
  std::set_difference(wanted.begin(), wanted.end(), have.begin(), have.end(), std::back_inserter(lacks));
  std::set_difference(have.begin(), have.end(), wanted.begin(), wanted.end(), std::back_inserter(extra));
  EXPECT_TRUE(lacks.empty()) << lacks.size() << " are lacking:" << first_lines(lacks);
  EXPECT_TRUE(extra.empty()) << extra.size() << " are too many:" << first_lines(extra);
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& recording) {
  std::string name = recording.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, OutlineTensors, ::testing::ValuesIn(recordings()), name_of);

// Totals that publishers state of checkpoints whose code transformers does not have, or has with another shape.
struct Total {
  std::string_view model;
  std::int64_t parameters;
};

constexpr Total kTotals[] = {
    {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49867145216},
    {"XiaomiMiMo/MiMo-7B-Base", 7833409536},
    {"allenai/Molmo-7B-D-0924", 8021025280},
    {"openbmb/MiniCPM-V-2_6", 8099175152},
    {"databricks/dbrx-instruct", 131596523520},
    // 16,061,784,576 bytes of two a parameter; each of 34 layers stores 64 rotary frequencies of four bytes.
    {"openpangu/openPangu-Embedded-7B", 16061784576 / 2 - 34 * 128},
    // 7,661,331,936 bytes, with the head that is the embedding, 152,681 x 2,048, stored twice.
    {"nvidia/LocateAnything-3B", 7661331936 / 2 - 152681LL * 2048},
    // The text is Kimi K2 with its 60 x 384 corrections of the router counted; the rest of 1,058,589,420,528 are scales
    // of 60 x 384 x 3 x 7,168 x 2,048 weights by 32 and eight times the two sizes that each packed weight has.
    {"moonshotai/Kimi-K2.5", 1058589420528 - 60LL * 384 * 3 * 7168 * 2048 / 32 - 60LL * 384 * 3 * 2 * 8 - 60 * 384},
    {"google/gemma-3-27b-it", 27432406640},
    {"LiquidAI/LFM2-1.2B", 1170340608},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31577937344},
    {"Qwen/Qwen2-Audio-7B-Instruct", 16794189824 / 2},
    // The text's head is the embedding, 262,208 x 5,376, and stored twice.
    {"google/medgemma-27b-it", 28842036848 - 262208LL * 5376},
    // Less a layer that predicts a token more: projection, attention, feed-forward and seven norms.
    {"Qwen/Qwen3.5-0.8B",
     873438784 - (2 * 1024 * 1024 + (4096 + 2 * 512 + 2048) * 1024 + 2 * 256 + 3 * 3584 * 1024 + 5 * 1024)},
    {"deepseek-ai/deepseek-moe-16b-chat", 16375728128},
};

TEST(Outlines, HaveTheTotalsOfPublishedCheckpoints) {
  for (const Total& total : kTotals) {
    const auto arch = find_model(total.model).and_then([](const CatalogueEntry& entry) {
      return build_outline(entry.config, entry.name);
    });
    ASSERT_TRUE(arch) << to_string(arch.error());
    EXPECT_EQ(parameter_count(*arch), total.parameters) << total.model;
  }
}

// Every model of the catalogue with a type builds, or says what is not modelled.
TEST(Outlines, EveryModelBuildsOrNamesWhatIsNotModelled) {
  int built_count = 0;
  std::vector<std::string> refused;
  for (const ModelRow& row : list_models({})) {
    const auto entry = find_model(row.name);
    ASSERT_TRUE(entry) << row.name;
    const auto arch = build_outline(entry->config, row.name);
    if (arch) ++built_count;
    else refused.push_back(to_string(arch.error()));
  }
  EXPECT_GT(built_count, 380);
  for (const std::string& line : refused) {
    EXPECT_EQ(line.find('\n'), line.npos);
    std::cout << line << "\n";
  }
}

TEST(Outlines, EveryOneIsRecordedOrHeldToATotal) { EXPECT_GT(recordings().size(), 80u); }

}  // namespace
}  // namespace ullage::model
