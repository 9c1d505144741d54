// Types of tensors in every mix, as llama-quantize chooses them (tests/truth/record_gguf_mixes.py).
#include "model/gguf_mix.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/lines.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

using Types = std::map<std::string, std::map<std::string, std::string>>;  // mix, tensor, type

void add_layers(std::map<std::string, std::string>& to, const std::string& name, const std::string& type,
                const std::string& ranges) {
  if (ranges.empty()) {
    to[name] = type;
    return;
  }
  std::istringstream in(ranges);
  for (std::string range; std::getline(in, range, ',');) {
    const std::size_t dash = range.find('-');
    const int last = std::stoi(dash == std::string::npos ? range : range.substr(dash + 1));
    for (int i = std::stoi(range); i <= last; ++i) {
      std::string full = name;
      full.replace(full.find('*'), 1, std::to_string(i));
      to[full] = type;
    }
  }
}

Types recorded(const std::string& text) {
  Types out;
  for_each_line(text, [&](std::string_view line) {
    std::istringstream in{std::string(line)};
    std::string mix, name, type, colon, ranges;
    in >> mix >> name >> type >> colon >> ranges;
    if (!mix.empty()) add_layers(out[mix], name, type, ranges);
  });
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

class GgufMixes : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufMixes, GiveEachTensorTheTypeThatQuantizationDoes) {
  const fs::path at = fs::path(ULLAGE_TEST_DATA) / "gguf_mixes" / GetParam();
  const Json config = parse_json(content(at.string() + ".json"), GetParam()).value();
  const auto arch = build_outline(config, GetParam());
  ASSERT_TRUE(arch) << to_string(arch.error());
  int mixes = 0;
  for (const auto& [mix, wanted] : recorded(content(at.string() + ".types"))) {
    const auto tensors = gguf_tensors(*arch, mix);
    ASSERT_TRUE(tensors) << to_string(tensors.error());
    std::map<std::string, std::string> have;
    for (const MixTensor& tensor : *tensors) have[tensor.name] = lower(layout_of(tensor.type).name);
    EXPECT_EQ(have.size(), wanted.size()) << mix;
    for (const auto& [name, type] : wanted) EXPECT_EQ(have[name], type) << mix << " " << name;
    ++mixes;
  }
  EXPECT_GE(mixes, 34);
}

INSTANTIATE_TEST_SUITE_P(Recorded, GgufMixes,
                         ::testing::Values("grouped", "many_heads", "tied", "odd", "odder", "eighty_layers",
                                           "eight_experts", "four_experts", "many_experts", "fused", "falcon"));

// Sizes that llama-quantize's own help gives for files of Llama 3 8B, in GiB with two digits; the vocabulary in their
// headers takes some 8 MB.
TEST(GgufMix, HasTheSizesThatLlamaQuantizeStates) {
  const auto entry = find_model("meta-llama/Llama-3.1-8B");
  const Architecture arch = build_outline(entry->config, "").value();
  const std::pair<const char*, double> sizes[] = {
      {"Q4_0", 4.34},   {"Q4_1", 4.78},   {"Q5_0", 5.21},   {"Q5_1", 5.65},   {"Q2_K", 2.96},
      {"Q3_K_S", 3.41}, {"Q3_K_M", 3.74}, {"Q3_K_L", 4.03}, {"Q4_K_S", 4.37}, {"Q4_K_M", 4.58},
      {"Q5_K_S", 5.21}, {"Q5_K_M", 5.33}, {"Q6_K", 6.14},   {"Q8_0", 7.96}};
  for (const auto& [mix, gib] : sizes) {
    const auto tensors = gguf_tensors(arch, mix);
    std::int64_t bytes = 0;
    for (const MixTensor& tensor : *tensors) bytes += tensor.bytes;
    const double without_header = gib - static_cast<double>(bytes) / (1 << 30);
    EXPECT_GT(without_header, -0.005) << mix;
    EXPECT_LT(without_header, 0.008 + 0.006) << mix;
  }
}

TEST(GgufMix, UnknownNamesAreRefusedWithThoseThatAre) {
  const auto refused = gguf_tensors({}, "Q9_Z");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Q4_K_M"), std::string::npos);
  EXPECT_TRUE(is_gguf_mix("q4_k"));
}

}  // namespace
}  // namespace ullage::model
