#include "engines/pytorch/torch_version.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "engines/pytorch/train.h"
#include "memory/attribution.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::engines::pytorch {
namespace {

constexpr std::int64_t kGranularity = 512;

model::Architecture small_llama() {
  Json config = model::find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0")->config;
  config["num_hidden_layers"] = 2;
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  config["num_attention_heads"] = 4;
  config["num_key_value_heads"] = 4;
  return model::build_architecture(config, "config").value();
}

TrainRun run(TorchVersion torch, std::int64_t seq_len) {
  static const model::Architecture architecture = small_llama();
  TrainOptions options;
  options.torch = torch;
  options.seq_len = seq_len;
  return run_train_step(architecture, options).value();
}

std::int64_t peak_of(const TrainRun& run) {
  const auto end = static_cast<std::uint32_t>(run.timeline.events.size());
  return memory::peak_between(run.timeline, run.before_step, end).bytes;
}

TEST(TorchVersion, IsReadAndDated) {
  EXPECT_EQ(parse_torch_version("2.0.1"), (TorchVersion{2, 0}));
  for (const char* text : {"", "2", "two", "2.x", "-1.2"}) EXPECT_FALSE(parse_torch_version(text)) << text;
  EXPECT_EQ(torch_of_month(202310), (TorchVersion{2, 1}));
  EXPECT_EQ(torch_of_month(202312), (TorchVersion{2, 1}));
  EXPECT_FALSE(torch_of_month(202302));
  EXPECT_FALSE(torch_of_month(202612));
}

// With one token the highest moment is in the optimizer: 2.0 has a second tensor of each parameter's size there.
TEST(TorchVersion, AdamsDenominatorsStoodBesideItsRoots) {
  std::int64_t all = 0;
  model::for_each_parameter(small_llama(), [&](const model::Parameter& parameter, std::string_view, int) {
    all += round_up(2 * parameter.elements(), kGranularity);
  });
  EXPECT_EQ(peak_of(run({2, 0}, 1)) - peak_of(run({2, 1}, 1)), all);
  EXPECT_EQ(peak_of(run({2, 2}, 1)), peak_of(run({}, 1)));
}

}  // namespace
}  // namespace ullage::engines::pytorch
