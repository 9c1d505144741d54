// `ullage check -- COMMAND`: verdicts of posted commands, exit codes, and corrections that hold what they promise.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "cli/captured_run.h"
#include "support/command_rows.h"

namespace ullage {
namespace {

using testing::Captured;
using testing::CommandRow;
using testing::run;
using Words = std::vector<std::string>;

// The files that a row's command names are its own.
cli::Files files_of(const CommandRow& row) {
  cli::Files out = testing::files();
  out.read = [row, real = out.read](const std::string& path, std::int64_t most) -> Expected<std::string> {
    if (auto text = testing::file_of(row, path)) return text;
    return real(path, most);
  };
  return out;
}

Captured check(Words options, const std::string& command, const cli::Files& files = testing::files()) {
  Words words{"check"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", command});
  return run(words, {}, files);
}

Json answer(Words options, const std::string& command, const cli::Files& files = testing::files()) {
  options.emplace_back("--json");
  const Captured captured = check(options, command, files);
  EXPECT_EQ(captured.status, 0) << captured.err;
  const auto json = parse_json(captured.out, "answer");
  EXPECT_TRUE(json);
  return json ? *json : Json::object();
}

// What happened by the thread, or by hand ("why"), written down before the program was asked; "open" says why an answer
// is not right yet.
TEST(CheckCommand, VerdictsAreThoseOfTheThreads) {
  int asked = 0;
  for (const CommandRow& row : testing::command_rows()) {
    if (row.row["engine"] != "vllm") continue;
    SCOPED_TRACE(row.command());
    Words options = row.strings("check");
    options.emplace_back("--json");
    const Captured captured = check(options, row.command(), files_of(row));
    const auto said = parse_json(captured.out, "answer");
    ASSERT_TRUE(said) << captured.err;
    const Json& prediction = (*said)["prediction"];
    const bool right = !prediction.is_null() && prediction["fits"] == row.row["starts"];
    EXPECT_EQ(right, row.row["open"].is_null()) << row.row["why"] << captured.err;
    asked += row.row["starts"].is_null() ? 0 : 1;
  }
  EXPECT_GE(asked, 24);
}

constexpr const char* kRefused = "vllm serve meta-llama/Llama-3.1-8B --host 0.0.0.0";

TEST(CheckCommand, ExitCodes) {
  EXPECT_EQ(check({"--gpu", "rtx-3090"}, kRefused).status, 0);
  EXPECT_EQ(check({"--gpu", "rtx-3090", "--require-fit"}, kRefused).status, 3);
  EXPECT_EQ(check({"--gpu", "h100", "--require-fit"}, kRefused).status, 0);
  EXPECT_EQ(check({"--require-fit"}, kRefused).status, 2);
  EXPECT_EQ(check({}, "ls -l").status, 2);
  EXPECT_EQ(check({}, "vllm serve").status, 2);
  EXPECT_EQ(run("check vllm serve gpt2").status, 2);
  EXPECT_EQ(run("check --gpu h100").err.substr(0, 16), "ullage: COMMAND:");
}

// Words that a shell has taken apart already are the same question.
TEST(CheckCommand, WordsAreAsGoodAsText) {
  const Captured words =
      run("check --gpu rtx-3090 --json -- A=1 vllm serve meta-llama/Llama-3.1-8B --max_model_len=4096");
  const Captured text = run(Words{"check", "--gpu", "rtx-3090", "--json", "--",
                                  "A=1 vllm serve \\\n  meta-llama/Llama-3.1-8B --max_model_len=4096"});
  EXPECT_EQ(words.status, 0) << words.err;
  EXPECT_EQ(words.out, text.out);
}

TEST(CheckCommand, AnswersWhatServeAnswers) {
  const Json said = answer({"--gpu", "rtx-3090"}, kRefused);
  Words words = said["args"].get<Words>();
  words.emplace_back("--json");
  EXPECT_EQ(said["prediction"], *parse_json(run(words).out, "answer"));
}

TEST(CheckCommand, CorrectionsStartWhenTheyAreAskedThemselves) {
  for (const char* line : {"vllm serve meta-llama/Llama-3.1-8B --max-num-seqs 512",
                           "vllm serve openai/gpt-oss-120b --gpu-memory-utilization 0.9",
                           "vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 8192"}) {
    const std::string command = line;
    const bool small = command.find("8B") != std::string::npos;
    const char* gpu = small ? "rtx-3090" : "h100";
    const Json said = answer({"--gpu", gpu, "--engine-version", "0.11.0"}, command);
    SCOPED_TRACE(command);
    EXPECT_EQ(said["prediction"]["fits"], false);
    ASSERT_GE(said["corrections"].size(), 1U);
    for (const Json& correction : said["corrections"]) {
      const std::string count = std::to_string(correction["gpus"].get<int>()) + "x" + gpu;
      const Json again = answer({"--gpu", count, "--engine-version", "0.11.0"}, correction["command"]);
      EXPECT_EQ(again["prediction"]["fits"], true) << correction["command"];
      EXPECT_EQ(again["prediction"]["peak"], correction["prediction"]["peak"]);
    }
  }
}

TEST(CheckCommand, VisibleGpusAreThoseThatThereAre) {
  const std::string command = "CUDA_VISIBLE_DEVICES=0 vllm serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 -tp 2";
  const Captured one = check({"--gpu", "rtx-4090"}, command);
  EXPECT_EQ(one.status, 2);
  EXPECT_NE(one.err.find("1 are fewer than the 2"), std::string::npos) << one.err;
  EXPECT_EQ(check({"--gpu", "2xrtx-4090"}, command).status, 0);  // the asker's count comes first
  EXPECT_EQ(check({}, command).status, 0);                       // no card: nothing to count
}

TEST(CheckCommand, ModelsOfOtherMachinesAreTakenByTheirNames) {
  for (const char* path : {"/models/TinyLlama-1.1B-Chat-v1.0", "./TinyLlama-1.1B-Chat-v1.0/",
                           "/hub/models--TinyLlama--TinyLlama-1.1B-Chat-v1.0/snapshots/abc"}) {
    const Json said = answer({}, std::string("vllm serve ") + path);
    EXPECT_EQ(said["launch"]["model"], path);
    EXPECT_EQ(said["launch"]["taken_model"], "TinyLlama/TinyLlama-1.1B-Chat-v1.0");
    EXPECT_EQ(said["prediction"]["model"]["name"], "TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  }
  EXPECT_EQ(check({}, "vllm serve /models/nobody-knows-it").status, 2);
  EXPECT_EQ(answer({"--model", "gpt2"}, "vllm serve /models/nobody-knows-it")["prediction"]["model"]["family"], "gpt2");
}

TEST(CheckCommand, ValuesOfIgnoredFlagsAndVariablesAreNotRepeated) {
  const std::string command = "HF_TOKEN=hunter2 vllm serve gpt2 --api-key hunter2";
  EXPECT_EQ(check({}, command).out.find("hunter2"), std::string::npos);
  EXPECT_EQ(check({"--json"}, command).out.find("hunter2"), std::string::npos);
}

TEST(CheckCommand, TwoReleasesDifferInWhatTheirDefaultsAre) {
  const Json said = answer({"--gpu", "h100", "--engine-version", "0.8.5,0.23.1"}, "vllm serve meta-llama/Llama-3.1-8B");
  EXPECT_EQ(said["schema"], "ullage.versions/1");
  EXPECT_EQ(said["versions"], Json::array({"0.8.5", "0.23.1"}));
  // Source: vllm/config/cache.py of both: 0.9, then 0.92.
  const Json share = {{"name", "gpu_memory_utilization"}, {"values", {"0.9", "0.92"}}};
  EXPECT_NE(std::find(said["defaults"].begin(), said["defaults"].end(), share), said["defaults"].end());
  for (const Json& row : said["memory"]) {
    if (row["name"] == "parameters") {
      EXPECT_EQ(row["bytes"][0], row["bytes"][1]);
    }
  }
  EXPECT_EQ(check({"--engine-version", "0.8.5,"}, "vllm serve gpt2").status, 2);
  EXPECT_EQ(check({"--engine-version", "0.8,0.9,0.10"}, "vllm serve gpt2").status, 2);
}

}  // namespace
}  // namespace ullage
