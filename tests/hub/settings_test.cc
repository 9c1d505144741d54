#include "hub/settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace ullage::hub {
namespace {

Settings settings_with(const std::map<std::string, std::string>& variables) {
  return settings_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

// As huggingface_hub resolves them.
TEST(Settings, FoldersFollowTheHubsOwnTools) {
  EXPECT_EQ(settings_with({{"HOME", "/u"}}).cache, "/u/.cache/huggingface/hub");
  EXPECT_EQ(settings_with({{"HOME", "/u"}, {"XDG_CACHE_HOME", "/c"}}).cache, "/c/huggingface/hub");
  EXPECT_EQ(settings_with({{"HOME", "/u"}, {"HF_HOME", "/h"}}).cache, "/h/hub");
  EXPECT_EQ(settings_with({{"HOME", "/u"}, {"HF_HOME", "~/h"}}).cache, "/u/h/hub");
  EXPECT_EQ(settings_with({{"HF_HOME", "/h"}, {"HF_HUB_CACHE", "/k"}}).cache, "/k");
  EXPECT_EQ(settings_with({{"HUGGINGFACE_HUB_CACHE", "/k"}}).cache, "/k");
  EXPECT_EQ(settings_with({{"HF_HOME", "/h"}}).beginnings, "/h/ullage");
  EXPECT_EQ(settings_with({}).cache, "");
}

TEST(Settings, EndpointAndTimeout) {
  EXPECT_EQ(settings_with({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_with({{"HF_ENDPOINT", "http://mirror/"}}).endpoint, "http://mirror");
  EXPECT_EQ(settings_with({{"HF_HUB_DOWNLOAD_TIMEOUT", "3"}}).timeout_seconds, 3);
  EXPECT_EQ(settings_with({{"HF_HUB_DOWNLOAD_TIMEOUT", "soon"}}).timeout_seconds, 10);
}

TEST(Settings, Offline) {
  EXPECT_FALSE(settings_with({{"HF_HUB_OFFLINE", "0"}}).offline);
  for (const char* value : {"1", "yes", "True", "ON"}) EXPECT_TRUE(settings_with({{"HF_HUB_OFFLINE", value}}).offline);
  EXPECT_TRUE(settings_with({{"TRANSFORMERS_OFFLINE", "1"}}).offline);
}

TEST(Settings, TheTokenIsTheVariablesOrTheFiles) {
  const std::string home = ::testing::TempDir() + "/hf_home";
  std::filesystem::create_directories(home);
  std::ofstream(home + "/token") << "hf_file\n";
  std::ofstream(home + "/other") << " hf_other\r\n";
  EXPECT_EQ(settings_with({{"HF_HOME", home}}).token, "hf_file");
  EXPECT_EQ(settings_with({{"HF_HOME", home}, {"HF_TOKEN_PATH", home + "/other"}}).token, "hf_other");
  EXPECT_EQ(settings_with({{"HF_HOME", home}, {"HF_TOKEN", "hf_variable"}}).token, "hf_variable");
  EXPECT_EQ(settings_with({{"HF_TOKEN", "hf_x\r\nEvil: 1"}}).token, "hf_xEvil:1");
  EXPECT_EQ(settings_with({{"HF_HOME", home}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  EXPECT_EQ(settings_with({{"HF_HOME", "/nowhere"}}).token, "");
}

}  // namespace
}  // namespace ullage::hub
