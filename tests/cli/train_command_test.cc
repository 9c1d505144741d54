// `ullage train` from its words to its answer.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/captured_run.h"
#include "cli/commands.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::run;

constexpr const char* kTiny =
    "--set vocab_size=320 --set n_embd=64 --set n_layer=2 --set n_head=4 --set n_positions=128";

Json answer(const std::string& line) {
  const Captured captured = run(line + " --json");
  EXPECT_EQ(captured.status, 0) << captured.err;
  const auto json = parse_json(captured.out, "answer");
  EXPECT_TRUE(json);
  return json ? *json : Json::object();
}

std::int64_t phase(const Json& answer, const std::string& name) {
  for (const Json& one : answer["phases"]) {
    if (one["name"] == name) return one["allocated_bytes"];
  }
  return -1;
}

struct Recorded {
  const char* line;
  std::int64_t peak, forward_peak, forward_backward_peak, before_step, after_forward, after_backward;
};

// Peaks that PyTorch's memory tracker showed on fake tensors (PyTorch 2.14, transformers 5.12, tests/truth/).
constexpr Recorded kRecorded[] = {
    {"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine pytorch --kernels cuda-traced --gpu h100-sxm-80gb "
     "--micro-batch 2 "
     "--seq-len 1024 --precision bf16 --optimizer adamw --optimizer-impl foreach --attention sdpa",
     11348389888, 11217351168, 11348389888, 6600291328, 10955190272, 8800388096},
    {"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --kernels cuda-traced --micro-batch 2 --seq-len 1024 --grad-accum 4",
     13548486656, 11217351168, 13548486656, 6600291328, 10955190272, 8800388096},
    {"train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --kernels cuda-traced --micro-batch 1 --seq-len 16384 --optimizer-impl "
     "fused "
     "--recompute full",
     14641203712, 13592759296, 14641203712, 6600394240, 11495607296, 8800491008},
    {"train openai-community/gpt2 --kernels cuda-traced --micro-batch 8 --seq-len 1024 --recompute full", 5869695488,
     5046416384, 5869695488, 746638848, 3399528960, 995518464},
};

class RecordedStep : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordedStep, EqualsPyTorchToTheByte) {
  const Recorded& recorded = GetParam();
  const Json said = answer(recorded.line);
  EXPECT_EQ(said["peak"]["allocated_bytes"], recorded.peak);
  EXPECT_EQ(phase(said, "forward_peak"), recorded.forward_peak);
  EXPECT_EQ(phase(said, "forward_backward_peak"), recorded.forward_backward_peak);
  EXPECT_EQ(phase(said, "before_step"), recorded.before_step);
  EXPECT_EQ(phase(said, "after_forward"), recorded.after_forward);
  EXPECT_EQ(phase(said, "after_backward"), recorded.after_backward);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedStep, ::testing::ValuesIn(kRecorded));

TEST(TrainCommand, DefaultsAreResolvedAndSaid) {
  const Json said = answer("train gpt2");
  EXPECT_EQ(said["setup"]["seq_len"], 1024);  // the model's limit, less than 2048
  EXPECT_EQ(said["setup"]["micro_batch"], 1);
  EXPECT_EQ(said["setup"]["precision"], "bf16");
  EXPECT_EQ(said["setup"]["optimizer"], "adamw");
  EXPECT_NE(said["assumptions"][0].get<std::string>().find("--micro-batch 1, --seq-len 1024, --precision bf16"),
            std::string::npos);
}

// TrainingArguments' own defaults (transformers 5.12): optim, max_grad_norm; accelerate's scaler for fp16.
TEST(TrainCommand, TheTrainerDecidesWhatIsNotSaid) {
  const Json usual = answer("train gpt2 --trainer hf")["setup"];
  EXPECT_EQ(usual["trainer"], "hf");
  EXPECT_EQ(usual["clip_grad"], 1);
  EXPECT_EQ(usual["optimizer_impl"], "fused");
  EXPECT_EQ(usual["grad_scaler"], false);
  const Json said = answer("train gpt2 --trainer hf --precision amp-fp16 --clip-grad 2 --optimizer-impl loop")["setup"];
  EXPECT_EQ(said["clip_grad"], 2);
  EXPECT_EQ(said["optimizer_impl"], "loop");
  EXPECT_EQ(said["grad_scaler"], true);
  EXPECT_FALSE(answer("train gpt2")["setup"].contains("trainer"));
}

// github.com/huggingface/transformers/pull/37358
TEST(TrainCommand, TheTrainerTakesTheFusedAdamWOfRecentReleasesAlone) {
  const auto impl = [](const std::string& versions) {
    return answer("train gpt2 --trainer hf --seq-len 64 " + versions)["setup"]["optimizer_impl"];
  };
  EXPECT_EQ(impl(""), "fused");
  EXPECT_EQ(impl("--torch 2.8"), "fused");
  EXPECT_EQ(impl("--torch 2.7"), "foreach");
  EXPECT_EQ(impl("--transformers 4.53"), "foreach");
}

TEST(TrainCommand, WhatIsNotComputedIsNull) {
  const Json said = answer("train gpt2 --gpu h100");
  for (const char* key : {"speed", "ranks", "host", "advice", "out_of_memory"}) EXPECT_TRUE(said[key].is_null()) << key;
  const Json on_host = answer("train gpt2 --gpu h100 --kernels cpu");
  for (const char* key : {"fits", "fits_certain", "headroom_bytes"}) EXPECT_TRUE(on_host[key].is_null()) << key;
  for (const char* key : {"reserved_bytes", "process_bytes", "reserved_range_bytes"})
    EXPECT_TRUE(on_host["peak"][key].is_null()) << key;
  EXPECT_TRUE(on_host["totals"]["process_bytes"].is_null());
}

TEST(TrainCommand, WithoutACardThereIsNoVerdict) {
  const Json said = answer("train gpt2");
  EXPECT_EQ(said["device"]["name"], "");
  EXPECT_TRUE(said["device"]["usable_bytes"].is_null());
  EXPECT_TRUE(said["headroom_at_most_bytes"].is_null());
}

TEST(TrainCommand, OneOfThreeBatchSizesFollows) {
  const std::string tiny = std::string("train gpt2 --seq-len 16 ") + kTiny;
  EXPECT_EQ(answer(tiny + " --micro-batch 2 --global-batch 8")["setup"]["grad_accum"], 4);
  EXPECT_EQ(answer(tiny + " --grad-accum 2 --global-batch 8")["setup"]["micro_batch"], 4);
  EXPECT_EQ(answer(tiny + " --global-batch 3")["setup"]["grad_accum"], 3);
  EXPECT_EQ(answer(tiny + " --micro-batch 2 --grad-accum 4")["setup"]["global_batch"], 8);
  EXPECT_EQ(answer(tiny + " --micro-batch 2 --grad-accum 4 --global-batch 8")["setup"]["global_batch"], 8);
}

TEST(TrainCommand, GivenMemoryReplacesTheCardsAndUsedIsTakenOff) {
  const Json said = answer("train gpt2 --gpu h100 --gpu-memory 10GiB --used 1GiB");
  EXPECT_EQ(said["device"]["usable_bytes"], 9 * kGiB);
}

TEST(TrainCommand, OthersAndTheAllocatorsSettingsCount) {
  const std::string small = std::string("train gpt2 --gpu h100 --seq-len 64 ") + kTiny;
  const Json plain = answer(small);
  const Json expandable = answer(small + " --alloc-conf expandable_segments:True");
  EXPECT_NE(expandable["peak"]["reserved_bytes"], plain["peak"]["reserved_bytes"]);
  EXPECT_EQ(expandable["peak"]["allocated_bytes"], plain["peak"]["allocated_bytes"]);
  EXPECT_EQ(expandable["setup"]["alloc_conf"], "expandable_segments:True");
  EXPECT_EQ(answer(small + " --used 10GiB")["headroom_bytes"].get<std::int64_t>(),
            plain["headroom_bytes"].get<std::int64_t>() - 10 * kGiB);
}

// What a card of each size would say about the same step.
TEST(TrainCommand, TheFirstAllocationThatFailsIsToldInPyTorchsWords) {
  for (const char* card : {"rtx-3060-12gb", "rtx-4090", "v100-sxm2-32gb", "a100-sxm-40gb", "a100-sxm-80gb"}) {
    const Json said = answer(std::string("train meta-llama/Llama-3.1-8B --micro-batch 8 --gpu ") + card);
    EXPECT_EQ(said["fits"], false) << card;
    const Json& full = said["out_of_memory"];
    ASSERT_FALSE(full.is_null()) << card;
    EXPECT_GT(full["segment_bytes"], full["free_bytes"]) << card;
    EXPECT_LE(full["reserved_bytes"], said["device"]["usable_bytes"]) << card;
  }
}

TEST(TrainCommand, RequireFitDecidesTheExitStatus) {
  EXPECT_EQ(run("train gpt2 --gpu h100 --gpu-memory 1MiB").status, 0);
  EXPECT_EQ(run("train gpt2 --gpu h100 --gpu-memory 1MiB --require-fit").status, 3);
  EXPECT_EQ(run("train gpt2 --gpu h100 --require-fit").status, 0);
}

TEST(TrainCommand, LanguageComesFromTheOptionElseFromTheSurroundings) {
  cli::Surroundings chinese;
  chinese.language = "zh_CN.UTF-8";
  EXPECT_NE(run({"train", "gpt2"}, chinese).out.find("峰值"), std::string::npos);
  EXPECT_EQ(run({"train", "gpt2", "--lang", "en"}, chinese).out.find("峰值"), std::string::npos);
  EXPECT_EQ(run({"train", "gpt2", "--json"}, chinese).out, run("train gpt2 --json --lang en").out);
}

TEST(TrainCommand, ColourOnlyWhereItIsWanted) {
  cli::Surroundings terminal;
  terminal.terminal = true;
  EXPECT_NE(run({"train", "gpt2"}, terminal).out.find("\x1b["), std::string::npos);
  EXPECT_EQ(run({"train", "gpt2", "--color", "never"}, terminal).out.find("\x1b["), std::string::npos);
  EXPECT_EQ(run("train gpt2").out.find("\x1b["), std::string::npos);
  EXPECT_NE(run("train gpt2 --color always").out.find("\x1b["), std::string::npos);
  terminal.no_color = true;
  EXPECT_EQ(run({"train", "gpt2"}, terminal).out.find("\x1b["), std::string::npos);
}

TEST(TrainCommand, AnImageIsResizedCountedAndSaid) {
  const Json whole = answer(
      "train Qwen/Qwen2.5-VL-3B-Instruct --image-size 1000 --image-max-pixels 602112 --seq-len 1024 "
      "--set num_hidden_layers=1 --set vision_config.depth=1");
  EXPECT_EQ(whole["setup"]["image_size"], 1000);
  EXPECT_EQ(whole["setup"]["image_max_pixels"], 602112);
  EXPECT_EQ(whole["setup"]["image_tokens"], 27 * 27);
  EXPECT_NE(whole["assumptions"].dump().find("resized to 756 pixels a side: 729 of its tokens"), std::string::npos)
      << whole["assumptions"];
  EXPECT_EQ(whole["warnings"], Json::array());
}

TEST(TrainCommand, ATowerIsFrozenByItsName) {
  const std::string line =
      "train Qwen/Qwen3-VL-2B-Instruct --image-size 256 --seq-len 256 --set text_config.num_hidden_layers=1";
  const Json whole = answer(line);
  const Json frozen = answer(line + " --freeze visual");
  const Json head = answer(line + " --freeze visual,language_model.layers,embed_tokens");
  EXPECT_EQ(whole["model"]["trainable_parameters"], whole["model"]["parameters"]);
  EXPECT_EQ(frozen["model"]["trainable_parameters"],
            head["model"]["trainable_parameters"].get<std::int64_t>() + 151936 * 2048 + 50336000)
      << "the embeddings and one layer of the text";
}

TEST(TrainCommand, WithoutUnicodeEverythingIsAscii) {
  cli::Surroundings plain;
  plain.unicode = false;
  for (const char c : run({"train", "gpt2", "--gpu", "h100", "--verbose"}, plain).out)
    ASSERT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(TrainCommand, QuietIsOneLine) {
  const std::string out = run("train gpt2 --gpu h100 --quiet").out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
}

TEST(TrainCommand, HostMemoryIsNotComparedWithACard) {
  const std::string out = run("train gpt2 --gpu h100 --kernels cpu --quiet").out;
  EXPECT_NE(out.find("of host memory at the peak"), std::string::npos) << out;
}

TEST(TrainCommand, AFullDiskIsSaid) {
  std::string err;
  const cli::Streams full{[](std::string_view) -> Expected<void> {
                            return fail(ErrorCode::io, "standard output", "cannot write: No space left on device");
                          },
                          [&](std::string_view text) { err += text; },
                          {}};
  EXPECT_EQ(cli::run(testing::words_of("train gpt2"), full, cli::real_files()), 2);
  EXPECT_EQ(err, "ullage: standard output: cannot write: No space left on device\n");
}

TEST(Predict, RefusesWhatIsNotBuiltAsUnsupported) {
  for (const char* line : {"serve resnet50", "train gpt2 --precision fp8", "train gpt2 --engine fsdp"}) {
    const auto prediction = cli::predict(testing::words_of(line), cli::real_files());
    ASSERT_FALSE(prediction) << line;
    EXPECT_EQ(prediction.error().code, ErrorCode::unsupported) << line;
  }
}

}  // namespace
}  // namespace ullage
