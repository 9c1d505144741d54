// Against a real server on this machine: what is fetched, what is kept, what each refusal says.
#include "hub/repository.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/loopback_server.h"

namespace ullage::hub {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c');
constexpr std::int64_t kMost = 1 << 20;

std::string content(const std::string& path) {
  std::stringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// A safetensors file of `size` bytes whose header takes `header` of them.
std::string safetensors(std::size_t header, std::size_t size) {
  std::string out(size, '.');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((header >> (8 * i)) & 0xFF);
  out.replace(8, header, std::string(header, 'h'));
  return out;
}

class HubTest : public ::testing::Test {
 protected:
  HubTest() {
    setenv("no_proxy", "127.0.0.1", 1);
    home_ = ::testing::TempDir() + "/hub_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(home_);
    settings_.cache = home_ + "/hub";
    settings_.beginnings = home_ + "/ullage";
    settings_.timeout_seconds = 1;
    outside_.wait = [this](double seconds) { waited_.push_back(seconds); };
  }

  // As the Hub answers for the files of org/name.
  Reply hub(const Received& request) const {
    const std::string prefix = "/org/name/resolve/";
    if (!request.path.starts_with(prefix)) return {404, {{"X-Error-Code", "RepoNotFound"}}, "", {}, 0};
    const std::string rest = request.path.substr(prefix.size());
    const auto file = files_.find(rest.substr(rest.find('/') + 1));
    if (file == files_.end()) return {404, {{"X-Error-Code", "EntryNotFound"}, {"X-Repo-Commit", kCommit}}, "", {}, 0};
    Reply out = ranged(request, file->second);
    out.fields.emplace_back("X-Repo-Commit", kCommit);
    out.fields.emplace_back("ETag", fmt::format("\"e{}\"", file->second.size()));
    return out;
  }

  std::unique_ptr<Repository> open(const LoopbackServer& server, std::string_view id = "org/name") {
    settings_.endpoint = server.url();
    auto out = open_repository(id, settings_, outside_);
    EXPECT_TRUE(out) << to_string(out.error());
    return out ? *std::move(out) : nullptr;
  }

  std::string home_;
  Settings settings_;
  Outside outside_;
  std::vector<double> waited_;
  std::map<std::string, std::string> files_;
};

TEST_F(HubTest, SmallFilesAreKeptAsTheHubsOwnToolsKeepThem) {
  files_["config.json"] = "{\"a\": 1}";
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  EXPECT_EQ(open(server)->read("config.json", kMost).value(), files_["config.json"]);
  const std::string folder = settings_.cache + "/models--org--name";
  EXPECT_EQ(content(folder + "/refs/main"), kCommit);
  const std::string link = folder + "/snapshots/" + kCommit + "/config.json";
  EXPECT_EQ(fs::read_symlink(link), "../../blobs/e8");
  EXPECT_EQ(content(link), files_["config.json"]);
  EXPECT_EQ(server.received().size(), 1U);
  EXPECT_EQ(open(server)->read("config.json", kMost).value(), files_["config.json"]);
  EXPECT_EQ(server.received().size(), 1U) << "what is here is not asked for again";
}

TEST_F(HubTest, WhatTheHubsToolsHaveFetchedIsUsedOffline) {
  const std::string folder = settings_.cache + "/models--org--name";
  fs::create_directories(folder + "/snapshots/" + kCommit + "/sub");
  fs::create_directories(folder + "/refs");
  std::ofstream(folder + "/refs/main") << kCommit;
  std::ofstream(folder + "/snapshots/" + kCommit + "/sub/x.safetensors") << safetensors(16, 64);
  settings_.offline = true;
  const auto repository = open_repository("org/name", settings_, outside_);
  ASSERT_TRUE(repository);
  const std::string paths[] = {"sub/x.safetensors"};
  const auto sources = (*repository)->open(paths);
  ASSERT_TRUE(sources) << to_string(sources.error());
  EXPECT_EQ((*sources)[0]->size_bytes(), 64);
  EXPECT_EQ((*sources)[0]->read(8, 16).value(), std::string(16, 'h'));
  EXPECT_EQ(to_string((*repository)->read("config.json", kMost).error()),
            "org/name/config.json: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it; unset that");
}

TEST_F(HubTest, WhatIsNotThereIsAskedForOnce) {
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  for (int i = 0; i < 2; ++i) {
    const auto answer = open(server)->read("model.safetensors.index.json", kMost);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::not_found);
  }
  // The first answer has told the commit, under which the absence is kept.
  EXPECT_EQ(server.received().size(), 1U);
  EXPECT_TRUE(
      fs::exists(settings_.cache + "/models--org--name/.no_exist/" + kCommit + "/model.safetensors.index.json"));
}

// 163 files whose headers take 1 KB to 163 KB: the headers and at most 64 KiB a file are sent.
TEST_F(HubTest, ManyFilesCostTheirHeaders) {
  std::vector<std::string> paths;
  std::int64_t headers = 0;
  for (std::size_t i = 1; i <= 163; ++i) {
    paths.push_back(fmt::format("model-{:05}-of-00163.safetensors", i));
    files_[paths.back()] = safetensors(1000 * i, 400'000);
    headers += static_cast<std::int64_t>(1000 * i + 8);
  }
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  {
    const auto sources = open(server)->open(paths);
    ASSERT_TRUE(sources) << to_string(sources.error());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto header = static_cast<std::int64_t>(1000 * (i + 1));
      EXPECT_EQ((*sources)[i]->size_bytes(), 400'000);
      EXPECT_EQ((*sources)[i]->read(8, header).value(), std::string(static_cast<std::size_t>(header), 'h'));
    }
  }
  EXPECT_LE(server.body_bytes_sent(), headers + 163 * 64 * 1024);
  EXPECT_LE(server.received().size(), 2 * 163U);
  const std::size_t before = server.received().size();
  const auto again = open(server)->open(paths);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[162]->read(8, 163'000).value(), std::string(163'000, 'h'));
  EXPECT_EQ(server.received().size(), before) << "headers are kept";
}

TEST_F(HubTest, ReadingOnFetchesMoreAndAhead) {
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += fmt::format("{:07} ", i);
  files_["model.gguf"] = bytes;
  const std::string paths[] = {"model.gguf"};
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  {
    auto sources = open(server)->open(paths);
    ASSERT_TRUE(sources);
    ByteSource& source = *sources->front();
    const std::string_view first = source.read(0, 100).value();
    for (std::int64_t at = 0; at + 100 < 900'000; at += 99) {
      ASSERT_EQ(source.read(at, 100).value(), bytes.substr(static_cast<std::size_t>(at), 100)) << at;
    }
    EXPECT_EQ(first, bytes.substr(0, 100));
    EXPECT_EQ(source.read(1'599'990, 10).value(), bytes.substr(1'599'990));
    EXPECT_EQ(source.read(5, 0).value(), "");
    EXPECT_EQ(source.read(1'599'990, 11).error().code, ErrorCode::malformed);
    EXPECT_LE(server.received().size(), 10U);
  }
  const std::size_t before = server.received().size();
  const auto again = open(server)->open(paths);
  EXPECT_EQ((*again)[0]->read(800'000, 100).value(), bytes.substr(800'000, 100));
  EXPECT_EQ(server.received().size(), before) << "what was read is kept";
}

TEST_F(HubTest, AServerWithoutRangesIsCutOff) {
  const std::string bytes = safetensors(100'000, 40'000'000);
  const LoopbackServer server([&](const Received&) { return Reply{200, {{"X-Repo-Commit", kCommit}}, bytes, {}, 0}; });
  const std::string paths[] = {"x.safetensors"};
  const auto sources = open(server)->open(paths);
  ASSERT_TRUE(sources) << to_string(sources.error());
  EXPECT_EQ((*sources)[0]->size_bytes(), 40'000'000);
  EXPECT_EQ((*sources)[0]->read(8, 100'000).value(), std::string(100'000, 'h'));
  EXPECT_EQ((*sources)[0]->read(300'000, 5).value(), ".....");
  // A socket's buffers are filled before the server notices.
  EXPECT_LT(server.body_bytes_sent(), 30'000'000);
}

TEST_F(HubTest, TheTokenStaysWithTheHub) {
  settings_.token = "hf_secret";
  files_["config.json"] = "{}";
  const LoopbackServer other([&](const Received&) { return Reply{200, {}, "{\"b\": 2}", {}, 0}; });
  const LoopbackServer server([&](const Received& request) {
    if (request.path.starts_with("/org/name/resolve"))
      return Reply{307, {{"Location", "/api/moved?x=1"}, {"X-Repo-Commit", kCommit}}, "", {}, 0};
    return Reply{302,
                 {{"Location", other.url() + "/blob"}, {"X-Repo-Commit", kCommit}, {"X-Linked-Etag", "\"abc\""}},
                 "",
                 {},
                 0};
  });
  EXPECT_EQ(open(server)->read("config.json", kMost).value(), "{\"b\": 2}");
  ASSERT_EQ(server.received().size(), 2U);
  EXPECT_EQ(server.received()[0].field("authorization"), "Bearer hf_secret");
  EXPECT_EQ(server.received()[1].field("authorization"), "Bearer hf_secret");
  EXPECT_EQ(other.received()[0].field("authorization"), "");
  EXPECT_EQ(content(settings_.cache + "/models--org--name/blobs/abc"), "{\"b\": 2}");
}

TEST_F(HubTest, WhatFailsForTheMomentIsTriedAgain) {
  files_["config.json"] = "{}";
  std::atomic<int> tries{0};
  const LoopbackServer server([&](const Received& request) {
    const int now = tries++;
    if (now == 0) return Reply{503, {}, "", {}, 0};
    if (now == 1) return Reply{429, {{"Retry-After", "7"}}, "", {}, 0};
    if (now == 2) return Reply{200, {}, "{", 100, 0};  // breaks off
    return hub(request);
  });
  EXPECT_EQ(open(server)->read("config.json", kMost).value(), "{}");
  EXPECT_EQ(waited_, (std::vector<double>{0.5, 7, 2}));
}

TEST_F(HubTest, RevisionsAreAskedForByName) {
  files_["config.json"] = "{}";
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  EXPECT_TRUE(open(server, "org/name@refs/pr/1")->read("config.json", kMost));
  EXPECT_EQ(server.received()[0].path, "/org/name/resolve/refs%2Fpr%2F1/config.json");
  EXPECT_EQ(content(settings_.cache + "/models--org--name/refs/refs/pr/1"), kCommit);
}

TEST_F(HubTest, AFileThatIsTooLargeIsNotReadOn) {
  files_["config.json"] = std::string(5000, ' ');
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  EXPECT_EQ(to_string(open(server)->read("config.json", 1000).error()),
            "org/name/config.json: has more than 1000 bytes");
}

struct Refusal {
  Reply reply;
  std::string says;  // URL in place of the server's address
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST_F(HubTest, RefusalsAreOneClearLine) {
  const std::vector<Refusal> refusals = {
      {{401, {}, "", {}, 0},
       "org/name: URL shows no such model (401); check the name, or set HF_TOKEN if it is private"},
      {{404, {{"X-Error-Code", "RepoNotFound"}}, "", {}, 0},
       "org/name: URL shows no such model (404); check the name, or set HF_TOKEN if it is private"},
      {{404, {{"X-Error-Code", "EntryNotFound"}}, "", {}, 0}, "org/name/config.json: the model has no such file (404)"},
      {{404, {{"X-Error-Code", "RevisionNotFound"}}, "", {}, 0},
       "org/name@main: the model has no such revision (404); leave @… out for the newest"},
      {{404, {}, "", {}, 0}, "org/name/config.json: is not there (404); check the name"},
      {{401, {{"X-Error-Code", "GatedRepo"}, {"X-Error-Message", "Access is restricted."}}, "", {}, 0},
       "org/name: is gated (401): Access is restricted.; agree at URL/org/name and set HF_TOKEN"},
      {{403, {{"X-Error-Code", "GatedRepo"}}, "", {}, 0},
       "org/name: is gated (403); agree at URL/org/name and set HF_TOKEN"},
      {{403, {}, "", {}, 0}, "org/name/config.json: may not be read (403); set HF_TOKEN to one that may"},
      {{418, {}, "", {}, 0},
       "org/name/config.json: the answer is status 418; see whether HF_ENDPOINT is the Hub's address"},
      {{500, {}, "", {}, 0},
       "URL/org/name/resolve/main/config.json: the answer is status 500, in 5 tries; try later, or set HF_ENDPOINT to "
       "a "
       "mirror"},
      {{429, {{"Retry-After", "300"}}, "", {}, 0},
       "URL/org/name/resolve/main/config.json: the answer is status 429; it asks to come again in 300 s; do so, or set "
       "HF_TOKEN"},
      {{302, {{"Location", "file:///etc/passwd"}}, "", {}, 0},
       "URL/org/name/resolve/main/config.json: is redirected to no address; report it to whoever runs the server"},
      {{302, {{"Location", "/again"}}, "", {}, 0},
       "URL/again: is redirected without end; report it to whoever runs the server"},
      {{200, {}, "{\"half\":", 400, 0},
       "URL/org/name/resolve/main/config.json: the answer broke off after 8 bytes, in 5 tries; try later, or set "
       "HF_ENDPOINT to a mirror"},
  };
  for (const Refusal& refusal : refusals) {
    const LoopbackServer server([&](const Received&) { return refusal.reply; });
    const auto answer = open(server)->read("config.json", kMost);
    ASSERT_FALSE(answer) << refusal.says;
    EXPECT_EQ(replaced(to_string(answer.error()), server.url(), "URL"), refusal.says);
  }
}

TEST_F(HubTest, SilenceEndsAfterTheTimeout) {
  const LoopbackServer server([&](const Received&) { return Reply{200, {}, "{}", {}, 2.5}; });
  const auto answer = open(server)->read("config.json", kMost);
  ASSERT_FALSE(answer);
  EXPECT_EQ(replaced(to_string(answer.error()), server.url(), "URL"),
            "URL/org/name/resolve/main/config.json: nothing came for 1 s, in 5 tries; try later, or set HF_ENDPOINT to "
            "a mirror");
}

TEST_F(HubTest, NobodyListens) {
  settings_.endpoint = "http://127.0.0.1:1";
  const auto repository = open_repository("org/name", settings_, outside_);
  EXPECT_EQ(to_string((*repository)->read("config.json", kMost).error()),
            "http://127.0.0.1:1/org/name/resolve/main/config.json: nobody listens there, in 5 tries; try later, or set "
            "HF_ENDPOINT to a mirror");
}

TEST_F(HubTest, ARangeThatWasNotAskedForIsNotTaken) {
  const LoopbackServer server([&](const Received&) {
    return Reply{206, {{"Content-Range", "bytes 7-9/100"}}, "abc", {}, 0};
  });
  const std::string paths[] = {"x.safetensors"};
  EXPECT_EQ(to_string(open(server)->open(paths).error()),
            "org/name/x.safetensors: the server did not send its beginning; try again");
}

TEST_F(HubTest, AnEmptyFileIsOne) {
  files_["x.gguf"] = "";
  const LoopbackServer server([&](const Received& request) { return hub(request); });
  const std::string paths[] = {"x.gguf"};
  const auto sources = open(server)->open(paths);
  ASSERT_TRUE(sources) << to_string(sources.error());
  EXPECT_EQ((*sources)[0]->size_bytes(), 0);
}

TEST(Repository, NamesThatLeadElsewhereAreNone) {
  for (const char* id : {"", "name", "a/b/c", "../b", "a/..", "a/b@../c", "a b/c", "a--b/c", "a/", "/b", "a/b@"}) {
    EXPECT_FALSE(open_repository(id, {})) << id;
  }
  const auto repository = open_repository("org/name", {});
  ASSERT_TRUE(repository);
  for (const char* path : {"", "/etc/passwd", "../x", "a/../b", "a//b", "a/./b"}) {
    EXPECT_EQ((*repository)->read(path, kMost).error().code, ErrorCode::malformed) << path;
  }
}

}  // namespace
}  // namespace ullage::hub
