// `max`, --sweep and --advise: whatever they say is what a single call gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "cli/captured_run.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::run;
using testing::words_of;
using Words = std::vector<std::string>;

Json answer(Words words) {
  words.emplace_back("--json");
  const Captured captured = run(words);
  EXPECT_EQ(captured.status, 0) << captured.err;
  const auto json = parse_json(captured.out, "answer");
  EXPECT_TRUE(json);
  return json ? *json : Json::object();
}

Json answer(const std::string& line) { return answer(words_of(line)); }

bool is_option(const std::string& word) { return word.starts_with("--"); }

// The words with `args` in place of the options of the same name, as advice is meant.
Words with(Words words, const Words& args) {
  for (const std::string& arg : args) {
    if (!is_option(arg)) continue;
    const auto old = std::find(words.begin(), words.end(), arg);
    if (old == words.end()) continue;
    const bool valued = old + 1 != words.end() && !is_option(old[1]);
    words.erase(old, old + (valued ? 2 : 1));
  }
  words.insert(words.end(), args.begin(), args.end());
  return words;
}

constexpr const char* kModels[] = {
    "openai-community/gpt2",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen3-0.6B",
    "microsoft/phi-2",
    "google/gemma-2b",
    "EleutherAI/pythia-1b",
    "bigscience/bloom-560m",
    "facebook/opt-1.3b",
    "Qwen/Qwen2.5-1.5B",
};

constexpr const char* kSetUps[] = {
    "--gpu t4 --precision fp16 --micro-batch 4 --seq-len 512",
    "--gpu rtx-4090 --micro-batch 8 --seq-len 512",
    "--gpu rtx-4090 --micro-batch 2 --seq-len 512 --precision amp-bf16",
    "--gpu h100 --micro-batch 4 --seq-len 512 --attention eager --precision fp32",
    "--gpu a100-80gb --micro-batch 6 --seq-len 512 --optimizer-impl fused --grad-accum 5",
    "--gpu rtx-3090 --seq-len 512 --lora 8 --micro-batch 16",
    "--gpu rtx-4070 --seq-len 512 --step first --optimizer sgd-momentum",
    "--gpu l4 --seq-len 512 --recompute full --clip-grad 1",
    "--micro-batch 3 --seq-len 512 --kernels cuda-traced",
};

std::int64_t whole_of(const Json& answer) {
  const Json& process = answer["peak"]["process_bytes"];
  return process.is_null() ? answer["peak"]["allocated_bytes"].get<std::int64_t>() : process.get<std::int64_t>();
}

class Advice : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Advice, IsWhatASingleCallGives) {
  const Words words = words_of("train " + std::string(std::get<0>(GetParam())) + " " + std::get<1>(GetParam()));
  Words asked = words;
  asked.emplace_back("--advise");
  const Json base = answer(asked);
  ASSERT_TRUE(base["advice"].is_array());
  for (const Json& line : base["advice"]) {
    const Json alone = answer(with(words, line["args"].get<Words>()));
    SCOPED_TRACE(line["args"].dump());
    EXPECT_EQ(whole_of(alone), whole_of(base) - line["saves_bytes"].get<std::int64_t>());
    EXPECT_EQ(alone["fits"], line["fits"]);
    if (!line["step_time_ratio"].is_null()) {
      EXPECT_GT(line["step_time_ratio"].get<double>(), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Advice,
                         ::testing::Combine(::testing::ValuesIn(kModels), ::testing::ValuesIn(kSetUps)));

// As they are listed: by the time of a step to two digits; what has none, another card, last.
TEST(Advice, IsListedCheapestFirst) {
  const Json base = answer("train meta-llama/Llama-3.1-8B --gpu rtx-4090 --lora 8 --micro-batch 4");
  std::vector<double> ratios;
  for (const Json& line : base["advice"]) {
    const Json& ratio = line["step_time_ratio"];
    ratios.push_back(ratio.is_null() ? 1e9 : std::round(100 * ratio.get<double>()));
  }
  EXPECT_GT(ratios.size(), 8U);
  EXPECT_EQ(ratios.back(), 1e9);
  EXPECT_TRUE(std::is_sorted(ratios.begin(), ratios.end())) << base["advice"].dump();
}

TEST(Advice, ComesByItselfWhereTheStepDoesNotFit) {
  const Json tight = answer("train meta-llama/Llama-3.1-8B --gpu rtx-4090");
  ASSERT_EQ(tight["fits"], false);
  ASSERT_TRUE(tight["advice"].is_array());
  EXPECT_TRUE(std::any_of(tight["advice"].begin(), tight["advice"].end(),
                          [](const Json& line) { return line["fits"] == true; }));
  EXPECT_TRUE(answer("train openai-community/gpt2 --gpu h100")["advice"].is_null());
}

TEST(Advice, RunningAgainTakesTime) {
  const Json base = answer("train meta-llama/Llama-3.1-8B --gpu h100 --micro-batch 4 --advise");
  for (const Json& line : base["advice"]) {
    if (line["args"] != Json({"--recompute", "full"})) continue;
    // A third forward pass of three such units; the optimizer's step is the same.
    EXPECT_GT(line["step_time_ratio"].get<double>(), 1.15);
    EXPECT_LT(line["step_time_ratio"].get<double>(), 1.40);
    return;
  }
  ADD_FAILURE() << "no such advice";
}

struct Searched {
  const char* line;
  const char* option;
};

class Largest : public ::testing::TestWithParam<Searched> {};

TEST_P(Largest, FitsAndTheNextDoesNot) {
  const std::string option = GetParam().option;
  const Words words = words_of(GetParam().line);
  Words asked = words;
  asked.insert(asked.end(), {option, "max"});
  const Json found = answer(asked);
  std::string name = option.substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  const auto value = found["setup"][name].get<std::int64_t>();
  EXPECT_EQ(found["fits"], true);
  const auto alone = [&](std::int64_t size) { return answer(with(words, {option, std::to_string(size)})); };
  const Json same = alone(value);
  EXPECT_EQ(same["peak"], found["peak"]);
  EXPECT_EQ(alone(value + 1)["fits"], false);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Largest,
    ::testing::Values(
        Searched{"train openai-community/gpt2 --gpu t4 --precision fp16", "--micro-batch"},
        Searched{"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090", "--micro-batch"},
        Searched{"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --recompute full", "--seq-len"},
        Searched{"train meta-llama/Llama-3.1-8B --gpu h100 --lora 16", "--seq-len"},
        Searched{"train meta-llama/Llama-3.1-8B --gpu rtx-4090 --lora 16 --quantize-base nf4 --seq-len 512",
                 "--micro-batch"},
        Searched{"train meta-llama/Llama-3.1-70B --gpu h200 --lora 8 --recompute full", "--micro-batch"},
        Searched{"train Qwen/Qwen2.5-0.5B --gpu rtx-3090 --optimizer muon --seq-len 300", "--micro-batch"},
        Searched{"train resnet50 --gpu rtx-3060-12gb --precision fp32 --optimizer sgd-momentum", "--micro-batch"}));

TEST(Sweep, RowsAreSingleCalls) {
  const Json swept = answer("train openai-community/gpt2 --gpu t4 --precision fp16 --sweep micro-batch=1..4");
  ASSERT_EQ(swept["rows"].size(), 4U);
  for (const Json& row : swept["rows"]) {
    Json alone = answer("train openai-community/gpt2 --gpu t4 --precision fp16 --micro-batch " +
                        row["value"].get<std::string>());
    alone["advice"] = nullptr;  // a table of many has none
    // Without the order of fields, which a large document loses when it is read.
    EXPECT_EQ(nlohmann::json(row["prediction"]), nlohmann::json(alone));
  }
}

TEST(Sweep, SearchesAnotherOptionForEachValue) {
  const std::string line = "train openai-community/gpt2 --gpu t4 --precision fp16 --micro-batch max";
  const Json swept = answer(line + " --sweep seq-len=512,1024");
  ASSERT_EQ(swept["rows"].size(), 2U);
  for (const Json& row : swept["rows"]) {
    const std::string value = row["value"].get<std::string>();
    const Json alone = answer(line + " --seq-len " + value);
    EXPECT_EQ(row["prediction"]["setup"]["micro_batch"], alone["setup"]["micro_batch"]) << value;
    EXPECT_EQ(row["prediction"]["peak"], alone["peak"]) << value;
  }
}

TEST(Sweep, AValueThatCannotRunIsARowWithTheReason) {
  const Json swept = answer("train openai-community/gpt2 --sweep seq-len=512,4096");
  EXPECT_TRUE(swept["rows"][0]["error"].is_null());
  EXPECT_TRUE(swept["rows"][1]["prediction"].is_null());
  EXPECT_NE(swept["rows"][1]["error"].get<std::string>().find("learned positions"), std::string::npos);
}

struct Refused {
  const char* line;
  const char* said;
};

class Refusal : public ::testing::TestWithParam<Refused> {};

TEST_P(Refusal, IsOneLine) {
  const Captured captured = run(GetParam().line);
  EXPECT_EQ(captured.status, 2);
  EXPECT_EQ(captured.out, "");
  EXPECT_NE(captured.err.find(GetParam().said), std::string::npos) << captured.err;
  EXPECT_EQ(std::count(captured.err.begin(), captured.err.end(), '\n'), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Refusal,
    ::testing::Values(Refused{"train gpt2 --micro-batch max", "Name a card with --gpu"},
                      Refused{"train gpt2 --gpu t4 --micro-batch max --seq-len max", "one of them at a time"},
                      Refused{"train meta-llama/Llama-3.1-8B --gpu t4 --micro-batch max", "not even 1 fits"},
                      Refused{"train gpt2 --gpu t4 --kernels cpu --micro-batch max", "nothing to fit into"},
                      Refused{"train gpt2 --sweep micro-batch", "has no '='"},
                      Refused{"train gpt2 --sweep micro-batch=1,2 --why", "belongs to one answer"},
                      Refused{"train gpt2 --sweep no-such=1,2", "no such option"},
                      Refused{"train gpt2 --sweep optimizer=adamw,nope", "'nope' is not one of"},
                      Refused{"train gpt2 --why nonsense", "--why: 'nonsense' is not one of parameters, "},
                      Refused{"train gpt2 --why fragmentatoin", "did you mean fragmentation?"},
                      Refused{"train gpt2 nonsense --why", "one argument too many"},
                      Refused{"train gpt2 --gpu t4 --sweep micro-batch=0..2", "'0' is not a whole number from 1"},
                      Refused{"train gpt2 --gpu t4 --sweep seq-len=512,4294967296,8", "is not a whole number from 1"},
                      Refused{"train gpt2 --gpu t4 --sweep clip-grad=1,x", "is not a number of 0 or more"},
                      Refused{"train gpt2 --gpu t4 --micro-batch max --sweep micro-batch=1,2",
                              "leave one of them out"}));

TEST(Why, SaysOneComponentOrAll) {
  const Captured all = run("train --why openai-community/gpt2");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_NE(all.out.find("parameters"), std::string::npos);
  EXPECT_NE(all.out.find("optimizer states"), std::string::npos);
  const Captured one = run("train openai-community/gpt2 --why optimizer");
  EXPECT_EQ(one.out.find("parameters\n"), std::string::npos);
  EXPECT_NE(one.out.find("497,759,232"), std::string::npos);
}

}  // namespace
}  // namespace ullage
