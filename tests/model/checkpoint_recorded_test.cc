// Files written by the formats' own libraries, against what those libraries read in them.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "model/checkpoint/gguf.h"
#include "model/checkpoint/safetensors.h"

namespace ullage::model {
namespace {

const std::string kFolder = std::string(ULLAGE_TEST_DATA) + "/checkpoints/";

std::string shape_text(const StoredShape& sizes) {
  std::string out;
  for (const std::int64_t size : sizes) out += (out.empty() ? "" : "x") + std::to_string(size);
  return out;
}

std::string listed(const Checkpoint& checkpoint) {
  std::ostringstream out;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    out << tensor.name << '\t' << tensor.type.name << '\t' << shape_text(tensor.sizes) << '\t' << tensor.elements
        << '\t' << tensor.bytes << '\n';
  }
  return out.str();
}

// The list without its first line, and the byte at which the data begin according to it.
std::pair<std::string, std::int64_t> recorded(const std::string& file) {
  std::ifstream in(kFolder + file + ".txt");
  std::string first;
  std::getline(in, first);
  std::ostringstream rest;
  rest << in.rdbuf();
  return {rest.str(), std::stoll(first.substr(first.rfind(' ')))};
}

TEST(CheckpointRecorded, GgufIsReadAsItsPackageReadsIt) {
  const auto source = open_file(kFolder + "types.gguf");
  ASSERT_TRUE(source);
  const auto file = read_gguf(**source);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto [list, data_at] = recorded("types.gguf");
  EXPECT_EQ(listed(checkpoint_of(*file)), list);
  EXPECT_EQ(file->header_bytes, data_at);
  EXPECT_FALSE(file->header_only);
}

// What tests/truth/record_checkpoints.py writes.
TEST(CheckpointRecorded, GgufMetadataHaveTheirTypes) {
  const auto source = open_file(kFolder + "types.gguf");
  const auto file = read_gguf(**source);
  ASSERT_TRUE(file);
  const auto value = [&](const char* key) { return *file->find(key); };
  EXPECT_EQ(value("general.architecture").text, "llama");
  EXPECT_EQ(value("llama.block_count").whole, 2);
  EXPECT_EQ(value("llama.feed_forward_length").numbers, (std::vector<std::int64_t>{512, 768}));
  EXPECT_FLOAT_EQ(static_cast<float>(value("llama.attention.layer_norm_rms_epsilon").real), 1e-5F);
  EXPECT_EQ(value("llama.some.switch").whole, 1);
  EXPECT_EQ(value("llama.some.negative").whole, -7);
  EXPECT_EQ(value("llama.some.double").real, 0.5);
  EXPECT_EQ(value("llama.some.pattern").numbers, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(value("tokenizer.chat_template").count, 5000);
  EXPECT_EQ(value("tokenizer.chat_template").text.size(), static_cast<std::size_t>(kGgufTextBytes));
  EXPECT_EQ(value("tokenizer.ggml.tokens").count, 1000);
  EXPECT_EQ(value("tokenizer.ggml.tokens").element, GgufKind::text);
  EXPECT_TRUE(value("tokenizer.ggml.scores").numbers.empty()) << "nobody needs them";
}

TEST(CheckpointRecorded, SafetensorsAreReadAsTheirLibraryReadsThem) {
  const auto source = open_file(kFolder + "types.safetensors");
  ASSERT_TRUE(source);
  const auto file = read_safetensors(**source);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto [list, data_at] = recorded("types.safetensors");
  EXPECT_EQ(listed(*file), list);
  EXPECT_EQ(file->header_bytes, data_at);
}

}  // namespace
}  // namespace ullage::model
