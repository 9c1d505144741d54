#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ullage {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("file_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string put(const char* name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(FileTest, ReadsTheWholeFileWithItsZeros) {
  const std::string content("a\0b\r\n", 5);
  EXPECT_EQ(read_file(put("x", content), 5).value(), content);
  EXPECT_EQ(read_file(put("empty", ""), 0).value(), "");
}

TEST_F(FileTest, RefusesWhatIsTooLargeUnread) {
  const std::string name = put("sparse", "");
  fs::resize_file(name, std::uintmax_t{2} << 30);
  const auto read = read_file(name, 1000);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::too_large);
  EXPECT_EQ(to_string(read.error()), name + ": has 2147483648 bytes; at most 1000 are read here");
}

TEST_F(FileTest, SaysWhatIsNoFile) {
  EXPECT_EQ(to_string(read_file(path("absent"), 10).error()), path("absent") + ": no such file");
  EXPECT_EQ(to_string(read_file(folder_.string(), 10).error()),
            folder_.string() + ": is a directory; name a file in it");
  EXPECT_EQ(to_string(read_file("/dev/zero", 10).error()), "/dev/zero: is not a regular file");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("pipe"), 10).error().code, ErrorCode::invalid_argument) << "must not wait for a writer";
}

TEST_F(FileTest, WritesAndReplaces) {
  ASSERT_TRUE(write_file(path("x"), "one"));
  ASSERT_TRUE(write_file(path("x"), "two"));
  EXPECT_EQ(read_file(path("x"), 10).value(), "two");
  EXPECT_EQ(files(), 1U) << "nothing is left beside it";
}

TEST_F(FileTest, AFullDiskIsAnError) {
  const auto written = write_file("/dev/full", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
  EXPECT_EQ(to_string(written.error()), "/dev/full: cannot write: No space left on device");
}

TEST_F(FileTest, AFailureLeavesTheOldFileAndNoHalfOfANewOne) {
  const std::string name = put("x", "old");
  // A folder stands where the new content would be written first.
  fs::create_directory(name + ".part");
  EXPECT_FALSE(write_file(name, "new"));
  EXPECT_EQ(read_file(name, 10).value(), "old");
}

TEST_F(FileTest, WritingIntoNothingIsAnError) {
  EXPECT_EQ(to_string(write_file(folder_.string(), "x").error()),
            folder_.string() + ": is a directory; name a file to write");
  EXPECT_EQ(write_file(path("no/such/folder"), "x").error().code, ErrorCode::not_found);
  EXPECT_TRUE(write_file("/dev/null", "x"));
}

}  // namespace
}  // namespace ullage
