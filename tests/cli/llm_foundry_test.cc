// --modules llm-foundry: what it is asked for wrongly, word for word, and what it takes where nothing is said.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::run;

std::string train(const std::string& model, const std::string& options) {
  return "train " + model + " --modules llm-foundry" + options;
}

const std::string kMpt = "mosaicml/mpt-7b";
const std::string kLearned = "gpt2 --set activation_function=\"gelu\"";

struct Wrong {
  std::string line;
  std::string says;  // behind "ullage: "
};

class LlmFoundryErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(LlmFoundryErrors, AreOneClearLine) {
  const Captured captured = run(GetParam().line);
  EXPECT_EQ(captured.status, 2);
  EXPECT_EQ(captured.err, "ullage: " + GetParam().says + "\n");
  EXPECT_EQ(captured.out, "");
}

const Wrong kWrong[] = {
    {train("TinyLlama/TinyLlama-1.1B-Chat-v1.0", ""),
     "--modules: llm-foundry's MPT is no llama; leave --modules at transformers"},
    {train("gpt2", ""),
     "--modules: llm-foundry's MPT has torch.nn.functional's activations, of which gelu alone is in this version; "
     "leave --modules at transformers"},
    {train(kMpt, " --precision bf16"),
     "--precision: llm-foundry's amp_bf16 alone is in this version: weights in fp32 under autocast; use amp-bf16"},
    {train(kMpt, " --attention eager"),
     "--attention: llm-foundry's attn_impl flash alone is in this version; leave it out"},
    {train(kMpt, " --loss chunked"), "--loss: llm-foundry has one loss, of all logits at once; leave it out"},
    {train(kMpt, " --optimizer sgd"),
     "--optimizer: llm-foundry's decoupled AdamW and Lion are in this version; use adamw, lion or none"},
    {train(kMpt, " --optimizer-impl fused"),
     "--optimizer-impl: llm-foundry's optimizers take one parameter after the other; leave it out"},
    {train(kMpt, " --optimizer-in-backward"), "--optimizer-in-backward: Composer has no such loop; leave it out"},
    {train(kMpt, " --lora 8"), "--lora: with --modules llm-foundry is not in this version"},
    {train(kMpt, " --set attn_config={\"alibi\":false}"),
     "attn_config.alibi: of llm-foundry's MPT is not in this version; set it to true"},
    {train(kMpt, " --set attn_config={\"qk_ln\":true}"),
     "attn_config.qk_ln: of llm-foundry's MPT is not in this version; set it to false"},
};

INSTANTIATE_TEST_SUITE_P(Words, LlmFoundryErrors, ::testing::ValuesIn(kWrong));

TEST(LlmFoundry, TakesComposersPrecisionItsKernelsAndItsOptimizer) {
  for (const std::string& model : {kMpt, kLearned}) {
    const Captured captured = run(train(model, " --json"));
    ASSERT_EQ(captured.status, 0) << captured.err;
    const Json setup = Json::parse(captured.out)["setup"];
    EXPECT_EQ(setup["modules"], "llm-foundry");
    EXPECT_EQ(setup["precision"], "amp-bf16");
    EXPECT_EQ(setup["attention"], "flash");
    EXPECT_EQ(setup["optimizer_impl"], "loop");
    EXPECT_EQ(setup["clip_grad"], 1.0);
  }
}

}  // namespace
}  // namespace ullage
