// The flash-attn package's function against PyTorch's kernel of the same origin: what the two are known to do
// differently, and nothing else, must separate them.
#include <gtest/gtest.h>

#include <algorithm>

#include "engines/pytorch/train.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage {
namespace {

using namespace engines::pytorch;

TrainOptions step_with(AttentionImpl attention, std::int64_t micro_batch) {
  TrainOptions out;
  out.card = {8, 0};  // where PyTorch takes its flash kernel
  out.attention = attention;
  out.micro_batch = micro_batch;
  out.seq_len = 512;
  return out;
}

TrainRun run(const char* model, const TrainOptions& options) {
  const auto entry = model::find_model(model);
  EXPECT_TRUE(entry);
  const auto architecture = model::build_architecture(entry->config, "config");
  EXPECT_TRUE(architecture);
  auto done = run_train_step(*architecture, options);
  EXPECT_TRUE(done) << done.error().message;
  return *std::move(done);
}

std::int64_t after_forward(const TrainRun& run) { return memory::moment_at(run.timeline, run.after_forward).bytes; }

class FlashPackage : public ::testing::TestWithParam<const char*> {};

// Of each layer PyTorch keeps a debugging tensor, a block of 512 bytes.
TEST_P(FlashPackage, KeepsOneBlockLessOfEachLayer) {
  const auto entry = model::find_model(GetParam());
  ASSERT_TRUE(entry);
  const std::int64_t layers = model::build_architecture(entry->config, "config")->layer_count();
  const TrainRun sdpa = run(GetParam(), step_with(AttentionImpl::sdpa, 2));
  const TrainRun package = run(GetParam(), step_with(AttentionImpl::flash, 2));
  EXPECT_EQ(after_forward(sdpa) - after_forward(package), 512 * layers);
}

INSTANTIATE_TEST_SUITE_P(Models, FlashPackage,
                         ::testing::Values("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "meta-llama/Llama-3.1-8B",
                                           "Qwen/Qwen2.5-0.5B", "openai-community/gpt2", "microsoft/phi-2"));

// A window costs PyTorch a mask, and with it keys and values for all heads; the package's function knows windows.
TEST(FlashPackage, NeedsNoMaskForAWindow) {
  TrainOptions options = step_with(AttentionImpl::flash, 1);
  options.seq_len = 8192;
  const TrainRun package = run("google/gemma-2-2b-it", options);
  const auto conditions = [](const TrainRun& run) {
    return std::count_if(run.timeline.ops.begin(), run.timeline.ops.end(),
                         [&](const memory::OpRecord& op) { return run.timeline.names[op.name] == "logical_and"; });
  };
  EXPECT_EQ(conditions(package), 0);
  options.attention = AttentionImpl::sdpa;
  const TrainRun sdpa = run("google/gemma-2-2b-it", options);
  EXPECT_GT(conditions(sdpa), 0);
  EXPECT_GT(after_forward(sdpa), after_forward(package));
}

// Only a batch of one row may be several sequences one behind the other, and only then are positions compared; those
// that they would be compared with are made in every layer and for any batch.
// Source: transformers 5.12, modeling_flash_attention_utils.py (_is_packed_sequence).
TEST(FlashPackage, ComparesPositionsInABatchOfOne) {
  const auto count = [](const TrainRun& run, std::string_view name) {
    std::int64_t found = 0;
    for (const memory::OpRecord& op : run.timeline.ops) found += run.timeline.names[op.name] == name ? 1 : 0;
    return found;
  };
  const char* model = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";
  const TrainRun one = run(model, step_with(AttentionImpl::flash, 1));
  const TrainRun two = run(model, step_with(AttentionImpl::flash, 2));
  EXPECT_EQ(count(one, "min"), 22);
  EXPECT_EQ(count(two, "min"), 22);
  EXPECT_EQ(count(one, "abs"), 22);
  EXPECT_EQ(count(two, "abs"), 0);
}

}  // namespace
}  // namespace ullage
