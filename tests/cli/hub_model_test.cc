// A model of the Hub that is in no catalogue.
#include <gtest/gtest.h>

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

TEST(HubModel, TheCatalogueIsAskedFirst) {
  const hub::LoopbackServer server([](const hub::Received&) { return hub::Reply{}; });
  EXPECT_EQ(testing::run({"inspect", "openai-community/gpt2", "--quiet"}, {}, files_of(server)).status, 0);
  EXPECT_TRUE(server.received().empty());
}

}  // namespace
}  // namespace ullage
