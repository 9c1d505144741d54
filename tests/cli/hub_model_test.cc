// A model of the Hub that is in no catalogue.
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "cli/captured_run.h"
#include "support/loopback_server.h"

namespace ullage {
namespace {

const std::string kCommit(40, 'a');

cli::Files files_of(const hub::LoopbackServer& server) {
  cli::Files out = testing::files();
  out.repository = [url = server.url()](const std::string& id) {
    hub::Settings settings;
    settings.endpoint = url;
    return hub::open_repository(id, settings);
  };
  return out;
}

TEST(HubModel, ItsConfigurationIsFetched) {
  const hub::LoopbackServer server([](const hub::Received& request) {
    hub::Reply out = hub::ranged(request, R"({"model_type": "gpt2", "n_layer": 2})");
    out.fields.emplace_back("X-Repo-Commit", kCommit);
    return out;
  });
  const auto said = testing::run({"inspect", "some-org/new-net@v2", "--json"}, {}, files_of(server));
  ASSERT_EQ(said.status, 0) << said.err;
  const auto json = parse_json(said.out, "answer");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["model"]["name"], "some-org/new-net");
  EXPECT_EQ((*json)["layer_count"], 2);
  EXPECT_EQ((*json)["assumptions"][0], "configuration from the Hub: some-org/new-net@v2, commit " + kCommit);
  ASSERT_EQ(server.received().size(), 1U);
  EXPECT_EQ(server.received()[0].path, "/some-org/new-net/resolve/v2/config.json");
}

TEST(HubModel, WhatTheHubRefusesIsOneLine) {
  const hub::LoopbackServer server([](const hub::Received&) {
    return hub::Reply{401, {{"X-Error-Code", "GatedRepo"}}, "", {}, 0};
  });
  const auto said = testing::run({"inspect", "some-org/closed"}, {}, files_of(server));
  EXPECT_EQ(said.status, 2);
  EXPECT_EQ(said.err, "ullage: some-org/closed: is gated (401); agree at " + server.url() +
                          "/some-org/closed and set HF_TOKEN\n");
}

// A safetensors file of one tensor, as its format's description says.
std::string safetensors(const std::string& tensor, std::int64_t elements) {
  std::string header = "{\"" + tensor + R"(":{"dtype":"BF16","shape":[)" + std::to_string(elements) +
                       "],\"data_offsets\":[0," + std::to_string(2 * elements) + "]}}";
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return out + header + std::string(static_cast<std::size_t>(2 * elements), '.');
}

TEST(HubModel, WhatItsFilesStoreIsReadFromTheirHeaders) {
  std::map<std::string, std::string> files = {
      {"config.json", R"({"model_type": "gpt2", "n_layer": 2})"},
      {"model.safetensors.index.json", R"({"metadata":{"total_size":600020},"weight_map":{"a":"m-1.safetensors",)"
                                       R"("b":"m-2.safetensors"}})"},
      {"m-1.safetensors", safetensors("a", 300'000)},
      {"m-2.safetensors", safetensors("b", 10)},
      {"model.safetensors", safetensors("c", 7)}};
  const hub::LoopbackServer server([&](const hub::Received& request) {
    const auto file = files.find(request.path.substr(request.path.rfind('/') + 1));
    hub::Reply out = file == files.end() ? hub::Reply{404, {{"X-Error-Code", "EntryNotFound"}}, "", {}, 0}
                                         : hub::ranged(request, file->second);
    out.fields.emplace_back("X-Repo-Commit", kCommit);
    return out;
  });
  const std::vector<std::string> line = {"inspect", "some-org/new-net", "--checkpoint", "--json"};
  const auto sharded = testing::run(line, {}, files_of(server));
  ASSERT_EQ(sharded.status, 0) << sharded.err;
  EXPECT_NE(sharded.out.find("600020"), std::string::npos) << sharded.out;
  EXPECT_LT(server.body_bytes_sent(), 200'000) << "the tensors stay where they are";
  files.erase("model.safetensors.index.json");
  const auto single = testing::run(line, {}, files_of(server));
  ASSERT_EQ(single.status, 0) << single.err;
  files.erase("model.safetensors");
  EXPECT_EQ(testing::run(line, {}, files_of(server)).status, 0) << "by rule";
}

TEST(HubModel, TheCatalogueIsAskedFirst) {
  const hub::LoopbackServer server([](const hub::Received&) { return hub::Reply{}; });
  EXPECT_EQ(testing::run({"inspect", "openai-community/gpt2", "--quiet"}, {}, files_of(server)).status, 0);
  EXPECT_TRUE(server.received().empty());
}

}  // namespace
}  // namespace ullage
