#include "base/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ullage {
namespace {

namespace fs = std::filesystem;

class ByteSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("byte_source_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string put(const char* name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  fs::path folder_;
};

void expect_ranges_of_abcdef(ByteSource& source) {
  ASSERT_EQ(source.size_bytes(), 6);
  EXPECT_EQ(source.read(0, 6).value(), "abcdef");
  EXPECT_EQ(source.read(2, 3).value(), "cde");
  EXPECT_EQ(source.read(6, 0).value(), "") << "nothing at the end is there";
  const std::int64_t beyond[][2] = {{0, 7}, {6, 1}, {7, 0}, {-1, 2}, {2, -1}, {INT64_MAX, INT64_MAX}, {1, INT64_MAX}};
  for (const auto& [offset, length] : beyond) {
    const auto read = source.read(offset, length);
    ASSERT_FALSE(read) << offset << " " << length;
    EXPECT_EQ(read.error().code, ErrorCode::malformed);
  }
  EXPECT_EQ(to_string(source.read(4, 3).error()),
            source.name() + ": ends at byte 6; 3 bytes from byte 4 on were expected; fetch the whole file again");
}

TEST_F(ByteSourceTest, ReadsRangesOfMemory) {
  const auto source = memory_source("text", "abcdef");
  EXPECT_EQ(source->name(), "text");
  expect_ranges_of_abcdef(*source);
}

TEST_F(ByteSourceTest, ReadsRangesOfAFile) {
  const auto source = open_file(put("x", "abcdef"));
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->name(), path("x"));
  expect_ranges_of_abcdef(**source);
}

TEST_F(ByteSourceTest, AnEmptyFileHasNoBytes) {
  const auto source = open_file(put("empty", ""));
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->size_bytes(), 0);
  EXPECT_EQ((*source)->read(0, 0).value(), "");
  EXPECT_FALSE((*source)->read(0, 1));
}

TEST_F(ByteSourceTest, AHugeFileCostsNothing) {
  const std::string name = put("sparse", "head");
  fs::resize_file(name, std::uintmax_t{1} << 40);
  const auto source = open_file(name);
  ASSERT_TRUE(source) << to_string(source.error());
  EXPECT_EQ((*source)->size_bytes(), std::int64_t{1} << 40);
  EXPECT_EQ((*source)->read(0, 4).value(), "head");
  EXPECT_EQ((*source)->read((std::int64_t{1} << 40) - 1, 1).value(), std::string_view("\0", 1));
}

TEST_F(ByteSourceTest, SaysWhatIsNoFile) {
  EXPECT_EQ(to_string(open_file(path("absent")).error()), path("absent") + ": no such file");
  EXPECT_EQ(to_string(open_file(folder_.string()).error()), folder_.string() + ": is a directory; name a file in it");
  EXPECT_EQ(to_string(open_file("/dev/zero").error()), "/dev/zero: is not a regular file");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_file(path("pipe")).error().code, ErrorCode::invalid_argument) << "must not wait for a writer";
}

}  // namespace
}  // namespace ullage
