// Host memory of loading, against what processes that load models were seen to hold (tests/data/lab/host-peaks.jsonl).
#include "report/loading.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "model/family.h"

namespace ullage {
namespace {

using report::Load;

constexpr double kNoiseBytes = 8 << 20;  // pages of the interpreter and its libraries that come meanwhile

struct Seen {
  Json model;
  std::string load;
  std::int64_t weights_bytes = 0;
  std::int64_t resident_bytes = 0;
};

std::vector<Seen> recorded() {
  std::vector<Seen> out;
  std::ifstream file(ULLAGE_TEST_DATA "/lab/host-peaks.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    out.push_back({row.at("model"), row.at("load"), row.at("weights_bytes"),
                   row.at("anonymous_bytes").get<std::int64_t>() + row.at("file_bytes").get<std::int64_t>()});
  }
  return out;
}

std::int64_t predicted(const Json& model, Load load) {
  const auto architecture = model::build_architecture(model, "model");
  EXPECT_TRUE(architecture);
  return report::host_memory(*architecture, {}, load).peak_bytes;
}

TEST(Loading, TakesWhatProcessesWereSeenToHold) {
  const std::vector<Seen> rows = recorded();
  ASSERT_GE(rows.size(), 4U);
  for (const Seen& row : rows) {
    const bool mapped = row.load == "safetensors";
    const std::int64_t bytes = predicted(row.model, mapped ? Load::safetensors : Load::torch);
    EXPECT_EQ(bytes, row.weights_bytes * (mapped ? 1 : 2));
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(row.resident_bytes), kNoiseBytes) << row.load;
  }
}

TEST(Loading, OnTheWayToTheCardCountsFourTensors) {
  const Json model = Json::parse(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 100,
      "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 1000})");
  // Two tables of 1000 x 64 and two of the three matrices of 64 x 100, in bf16.
  EXPECT_EQ(predicted(model, Load::meta), 2 * (2 * 1000 * 64 + 2 * 64 * 100));
}

}  // namespace
}  // namespace ullage
