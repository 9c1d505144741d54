// What is read of launch commands as people post them: the table of tests/data/launch-commands.jsonl, whose expected
// answers were written down before the program read any of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "launch/launch.h"
#include "support/command_rows.h"

namespace ullage::launch {
namespace {

using ullage::testing::CommandRow;

Expected<Launch> read(const std::string& text, const CommandRow* row = nullptr) {
  const std::vector<std::string> words{text};
  return read_launch(words, [&](const std::string& path) -> Expected<std::string> {
    if (row != nullptr) return ullage::testing::file_of(*row, path);
    return fail(ErrorCode::not_found, path, "no such file");
  });
}

Json options_of(const Launch& launch) {
  Json out = Json::object();
  for (const ServeOption& option : launch.options)
    out[option.name] = option.value.empty() ? Json(true) : Json(option.value);
  return out;
}

std::vector<std::string> names_of(const std::vector<ReadFlag>& flags) {
  std::vector<std::string> out;
  for (const ReadFlag& flag : flags) out.push_back(flag.name);
  return out;
}

// Order does not matter.
Json sorted(const Json& object) { return Json(nlohmann::json(object)); }

void expect_row(const CommandRow& row) {
  SCOPED_TRACE(row.command());
  const auto launch = read(row.command(), &row);
  ASSERT_TRUE(launch) << to_string(launch.error());
  EXPECT_EQ(engine_word(launch->engine), row.row["engine"].get<std::string>());
  EXPECT_EQ(launch->model, row.row["model"].get<std::string>());
  EXPECT_EQ(launch->version, row.row["version"].get<std::string>());
  EXPECT_EQ(sorted(options_of(*launch)).dump(), sorted(row.row["options"]).dump());
  EXPECT_EQ(names_of(launch->ignored), row.strings("ignored"));
  EXPECT_EQ(names_of(launch->uncounted), row.strings("uncounted"));
  EXPECT_EQ(launch->ignored_env, row.strings("environment"));
  EXPECT_EQ(launch->around, row.strings("around"));
  const Json& gpus = row.row["gpus"];
  EXPECT_EQ(launch->visible_gpus, gpus.is_null() ? std::nullopt : std::optional(gpus.get<std::int64_t>()));
  Json unknown = Json::object();
  for (const UnknownFlag& flag : launch->unknown) unknown[flag.written] = flag.taken_for;
  EXPECT_EQ(unknown, row.row["unknown"]);
}

TEST(LaunchTable, CommandsAreReadAsTheyWereMeant) {
  for (const CommandRow& row : ullage::testing::command_rows()) expect_row(row);
}

// The options of `ullage serve` that decide memory, by engine.
constexpr std::string_view kVllm =
    "--dtype --quantization --max-model-len --gpu-memory-utilization --kv-cache-memory-bytes --max-num-batched-tokens "
    "--max-num-seqs --kv-cache-dtype --block-size --enforce-eager --enable-prefix-caching --tensor-parallel-size "
    "--pipeline-parallel-size --data-parallel-size --enable-expert-parallel --decode-context-parallel-size "
    "--speculative-config --enable-lora --max-loras --max-lora-rank --limit-mm-per-prompt --cudagraph-capture-sizes "
    "--cpu-offload-gb";
constexpr std::string_view kSglang =
    "--tp --pp --dp --ep --dtype --quantization --context-length --mem-fraction-static --chunked-prefill-size "
    "--max-running-requests --max-total-tokens --cuda-graph-max-bs --kv-cache-dtype --page-size --enable-dp-attention "
    "--attention-backend --speculative-algorithm --kt-num-gpu-experts";
constexpr std::string_view kTensorRt =
    "--tp_size --pp_size --ep_size --dtype --quantization --max_batch_size --max_input_len --max_output_len "
    "--max_num_tokens --max_beam_width --tokens_per_block --kv_cache_free_gpu_mem_fraction --kv_cache_dtype";

void expect_read(Engine engine, std::string_view list) {
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
    const auto flag = find_flag(engine, name);
    ASSERT_TRUE(flag) << name;
    EXPECT_TRUE(flag->role == Role::option || flag->role == Role::translated) << name;
  }
}

TEST(LaunchTable, NoFlagThatDecidesMemoryIsIgnored) {
  expect_read(Engine::vllm, kVllm);
  expect_read(Engine::sglang, kSglang);
  expect_read(Engine::tensorrt_llm, kTensorRt);
}

TEST(LaunchTable, NoFlagStandsInTwoTables) {
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::tensorrt_llm}) {
    std::set<std::string_view> seen;
    for (const Role role : {Role::option, Role::translated, Role::ignored, Role::uncounted}) {
      for (const std::string_view name : flags_of(engine, role)) EXPECT_TRUE(seen.insert(name).second) << name;
    }
    EXPECT_GT(seen.size(), engine == Engine::tensorrt_llm ? 30U : 150U);
  }
}

TEST(LaunchTable, SlipsOfThePenAreNamed) {
  EXPECT_EQ(nearest_flag(Engine::vllm, "--max-model-length"), "--max-model-len");
  EXPECT_EQ(nearest_flag(Engine::vllm, "--tensor-paralel-size"), "--tensor-parallel-size");
  EXPECT_EQ(nearest_flag(Engine::sglang, "--mem-fraction-statics"), "--mem-fraction-static");
  EXPECT_EQ(nearest_flag(Engine::tensorrt_llm, "--max-batchsize"), "--max_batch_size");
  EXPECT_EQ(nearest_flag(Engine::vllm, "--frobnicate"), "");
}

// Source: docs.vllm.ai, serve arguments: the model of the command comes before that of the file.
TEST(LaunchTable, AModelNamedByItsPlaceComesBeforeTheFiles) {
  const auto file = [](const std::string&) -> Expected<std::string> { return "model: gpt2\nport: 1\n"; };
  const std::vector<std::string> placed{"vllm serve facebook/opt-125m --config serve.yaml"};
  const auto launch = read_launch(placed, file);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->model, "facebook/opt-125m");
  EXPECT_TRUE(launch->unknown.empty());
  const std::vector<std::string> unplaced{"vllm serve --config serve.yaml"};
  EXPECT_EQ(read_launch(unplaced, file)->model, "gpt2");
}

TEST(LaunchTable, ListsAreReadToTheirEnd) {
  const auto launch = read("python -m sglang.launch_server --model gpt2 --cuda-graph-bs 1 2 4 8");
  ASSERT_TRUE(launch);
  EXPECT_TRUE(launch->unknown.empty());
}

TEST(LaunchTable, BeginningsOfSeveralFlagsAreNone) {
  EXPECT_EQ(find_flag(Engine::vllm, "--gpu-mem")->name, "--gpu-memory-utilization");
  EXPECT_FALSE(find_flag(Engine::vllm, "--max-num"));
  EXPECT_FALSE(find_flag(Engine::tensorrt_llm, "--max_batch"));
  EXPECT_TRUE(find_flag(Engine::vllm, "--no-enable-prefix-caching")->off);
  EXPECT_FALSE(find_flag(Engine::vllm, "--no-max-model-len"));
}

TEST(LaunchTable, WhatIsNoKnownCommandSaysSo) {
  const struct {
    const char* command;
    ErrorCode code;
    const char* where;
  } rows[] = {
      {"llama-server -m model.gguf -ngl 99", ErrorCode::unsupported, "llama-server"},
      {"ollama run llama3", ErrorCode::unsupported, "ollama"},
      {"vllm bench throughput --model gpt2", ErrorCode::unsupported, "vllm bench"},
      {"bash start.sh", ErrorCode::unsupported, "start.sh"},
      {"ls -l", ErrorCode::invalid_argument, "ls"},
      {"python train.py", ErrorCode::invalid_argument, "train.py"},
      {"uv", ErrorCode::invalid_argument, "uv"},
      {"docker ps -a", ErrorCode::invalid_argument, "docker"},
      {"vllm serve 'gpt2", ErrorCode::malformed, "COMMAND"},
      {"vllm serve gpt2 --max-model-len", ErrorCode::invalid_argument, "--max-model-len"},
      {"vllm serve gpt2 --config missing.yaml", ErrorCode::not_found, "missing.yaml"},
      {"vllm serve gpt2 --hf-overrides '{\"a\": '", ErrorCode::malformed, "--hf-overrides"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.command);
    const auto launch = read(row.command);
    ASSERT_FALSE(launch);
    EXPECT_EQ(launch.error().code, row.code);
    EXPECT_EQ(launch.error().where.substr(0, std::string(row.where).size()), row.where);
    EXPECT_EQ(to_string(launch.error()).find('\n'), std::string::npos);
  }
}

// Bytes that are no UTF-8 are replaced where JSON is made of them.
TEST(LaunchTable, AnyBytesAreRead) {
  EXPECT_TRUE(read("vllm serve gpt2 --hf-overrides.a.b \xff- --speculative-config.x \xc3"));
}

TEST(LaunchTable, CommandsChangeWhereTheyMust) {
  const struct {
    const char* command;
    std::vector<std::pair<std::string, std::string>> changes;
    const char* changed;
  } rows[] = {
      {"vllm serve gpt2 --max-model-len 1024 --port 1",
       {{"--max-model-len", "512"}},
       "vllm serve gpt2 --max-model-len 512 --port 1"},
      {"vllm serve gpt2 --max_model_len=1024 --port 1",
       {{"--max-model-len", "512"}},
       "vllm serve gpt2 --max_model_len 512 --port 1"},
      {"vllm serve gpt2 -tp 2 -tp 4", {{"--tensor-parallel-size", "8"}}, "vllm serve gpt2 -tp 8"},
      {"vllm serve gpt2",
       {{"--enforce-eager", ""}, {"--max-num-seqs", "8"}},
       "vllm serve gpt2 --enforce-eager --max-num-seqs 8"},
      {"A=1 vllm serve gpt2 --max-modle-len 8", {}, "A=1 vllm serve gpt2 --max-model-len 8"},
      {"vllm serve gpt2 --nonsense 8 --seed 1", {}, "vllm serve gpt2 --seed 1"},
      {"docker run --gpus all vllm/vllm-openai:v0.9.1 --model gpt2 --max-num-seqs 9",
       {{"--max-num-seqs", "4"}},
       "docker run --gpus all vllm/vllm-openai:v0.9.1 --model gpt2 --max-num-seqs 4"},
      {"vllm serve gpt2 --cudagraph-capture-sizes 1 2 4 --seed 1",
       {{"--cudagraph-capture-sizes", "1"}},
       "vllm serve gpt2 --cudagraph-capture-sizes 1 --seed 1"},
  };
  for (const auto& row : rows) {
    const auto launch = read(row.command);
    ASSERT_TRUE(launch) << to_string(launch.error());
    EXPECT_EQ(changed_command(*launch, row.changes), row.changed);
  }
}

}  // namespace
}  // namespace ullage::launch
