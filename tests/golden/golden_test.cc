// Approved answers, word for word. ULLAGE_UPDATE_GOLDEN=1 writes them anew; read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/captured_run.h"

namespace ullage {
namespace {

struct Golden {
  const char* file;
  const char* line;
};

// A small GPT-2 and a small Llama keep the files readable.
#define ULLAGE_SMALL_GPT2 "gpt2 --set n_layer=3 --set n_embd=256 --set n_head=4 --seq-len 128 --micro-batch 4"

constexpr Golden kGoldens[] = {
    {"help.txt", "--help"},
    {"help-zh.txt", "--help --lang zh"},
    {"train-help.txt", "train --help"},
    {"train-help-zh.txt", "train --help --lang zh"},
    {"train-llama.txt", "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --micro-batch 2 --seq-len 1024"},
    {"train-llama-zh.txt",
     "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --micro-batch 2 --seq-len 1024 --lang zh"},
    {"train-llama-too-large.txt", "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu t4 --micro-batch 8 --units GB"},
    {"train-full-12gb.txt", "train meta-llama/Llama-3.1-8B --gpu rtx-3060-12gb --recompute full"},
    {"train-full-24gb.txt", "train meta-llama/Llama-3.1-8B --gpu rtx-4090 --recompute full"},
    {"train-full-32gb.txt", "train meta-llama/Llama-3.1-8B --gpu rtx-5090 --recompute full"},
    {"train-full-40gb-zh.txt", "train meta-llama/Llama-3.1-8B --gpu a100-sxm-40gb --recompute full --lang zh"},
    {"train-full-80gb.txt",
     "train meta-llama/Llama-3.1-8B --gpu a100-sxm-80gb --micro-batch 8 --alloc-conf expandable_segments:True"},
    {"train-gpt2.txt", "train gpt2 --recompute full --optimizer sgd --precision fp32"},
    {"train-gpt2-verbose.txt", "train " ULLAGE_SMALL_GPT2 " --verbose --units bytes"},
    {"train-gpt2-quiet.txt", "train gpt2 --gpu h100 --quiet"},
    {"train-gpt2.json", "train " ULLAGE_SMALL_GPT2 " --gpu h100 --json"},
    {"train-gpt2-forward.json", "train " ULLAGE_SMALL_GPT2 " --step forward --json"},
    {"train-advice.txt", "train meta-llama/Llama-3.1-8B --gpu rtx-4090 --lora 16 --micro-batch 4"},
    {"train-why.txt", "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --why"},
    {"train-sweep.txt", "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-3090 --sweep micro-batch=1..8"},
    {"train-sweep-zh.txt",
     "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-3090 --sweep seq-len=1024,2048 --lang zh"},
    {"train-max.txt",
     "train TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --recompute full --seq-len 2048 --micro-batch max"},
    {"serve-help.txt", "serve --help"},
    {"serve-llama.txt", "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --batch 4 --seq-len 1024"},
    {"serve-llama-zh.txt",
     "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --gpu rtx-4090 --batch 4 --seq-len 1024 --lang zh"},
    {"serve-cards.txt", "serve meta-llama/Llama-3.1-70B --gpu 2xrtx-4090 --quantization nf4"},
    {"serve-cards-zh.txt", "serve meta-llama/Llama-3.1-8B --gpu rtx-4070,rtx-4090 --lang zh"},
    {"fit.txt", "fit 7B,13B,70B --gpu rtx-4070,rtx-4090,rtx-5090"},
    {"fit-zh.txt", "fit 7B,13B,70B --gpu rtx-4070,rtx-4090,rtx-5090 --lang zh"},
    {"fit.json", "fit 7B,13B,70B --gpu rtx-4070,rtx-4090,rtx-5090 --json"},
    {"fit-models.txt", "fit --gpu rtx-4090"},
    {"fit-help.txt", "fit --help"},
    {"serve-vllm.txt", "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine vllm --gpu rtx-4090"},
    {"serve-vllm-zh.txt",
     "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine vllm --gpu rtx-4090 --lang zh --input-len 1000 --output-len "
     "200"},
    {"serve-vllm-refused.txt", "serve meta-llama/Llama-3.1-8B --engine vllm --gpu rtx-3090 --engine-version 0.19.0"},
    {"serve-vllm-why.txt",
     "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine vllm --gpu h100 --engine-version 0.19.0 --why"},
    {"serve-vllm-stages.json",
     "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine vllm --gpu 2xa100 --pipeline-parallel-size 2 --json"},
    {"check-help.txt", "check --help"},
    {"check.txt",
     "check --gpu 2xrtx-4090 -- docker run --gpus all -v /srv:/srv -e HF_TOKEN=x vllm/vllm-openai:v0.19.0 --model "
     "TinyLlama/TinyLlama-1.1B-Chat-v1.0 -tp 2 --max_model_len=2048 --port 8000 --disable-custom-all-reduce"},
    {"check-refused.txt",
     "check --gpu rtx-3090 -- vllm serve meta-llama/Llama-3.1-8B --gpu-memory-utilisation 0.9 --host 0.0.0.0"},
    {"check-refused-zh.txt",
     "check --gpu rtx-3090 --lang zh -- CUDA_VISIBLE_DEVICES=0 vllm serve /srv/meta-llama/Llama-3.1-8B --host 0.0.0.0"},
    {"check.json", "check --json -- vllm serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --max-modle-len 1024 --port 8000"},
    {"versions.txt", "serve meta-llama/Llama-3.1-8B --engine vllm --gpu h100 --engine-version 0.8.5,0.19.0"},
    {"versions-zh.txt",
     "check --gpu rtx-3090 --lang zh --engine-version 0.6.4,0.19.0 -- vllm serve meta-llama/Llama-3.1-8B"},
    {"serve-sglang.txt", "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine sglang --gpu rtx-4090"},
    {"serve-sglang-zh.txt",
     "serve openai/gpt-oss-20b --engine sglang --gpu h100 --lang zh --input-len 1000 --output-len 500 --concurrency "
     "64"},
    {"serve-sglang-refused.txt",
     "serve meta-llama/Llama-3.1-8B --engine sglang --gpu rtx-4090 --mem-fraction-static 0.6"},
    {"serve-sglang-why.txt",
     "serve Qwen/Qwen3-Next-80B-A3B-Instruct --engine sglang --gpu 4xh200 --tp 4 --engine-version 0.5.9 --why"},
    {"serve-sglang-copies.json",
     "serve deepseek-ai/DeepSeek-V3 --engine sglang --gpu 8xh200 --tp 8 --dp 8 --enable-dp-attention --json"},
    {"serve-tensorrt-llm.txt", "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine tensorrt-llm --gpu l4"},
    {"serve-mindie-zh.txt",
     "serve Qwen/Qwen2.5-7B --engine mindie --gpu 910b --input-len 1024 --output-len 512 --lang zh"},
    {"serve-lmdeploy-refused.txt", "serve Qwen/Qwen2.5-7B --engine lmdeploy --gpu rtx-4060"},
    {"serve-tgi.json", "serve TinyLlama/TinyLlama-1.1B-Chat-v1.0 --engine tgi --gpu l4 --json"},
    {"engines-tgi-room.txt", "engines tgi-room"},
    {"engines-graph.txt", "engines graph"},
    {"engines-context-zh.txt", "engines context --lang zh"},
    {"inspect-llama.txt", "inspect TinyLlama/TinyLlama-1.1B-Chat-v1.0"},
    {"inspect-llama-zh.txt", "inspect TinyLlama/TinyLlama-1.1B-Chat-v1.0 --lang zh"},
    {"inspect-gpt2.json", "inspect gpt2 --json"},
    {"inspect-tensor.txt", "inspect --tensor 32x3x256x256 --dtype fp32"},
    {"inspect-tensor.json", "inspect --tensor 32x3x256x256 --dtype fp32 --json"},
    {"mfu.txt",
     "mfu llama-7b --examples-per-second 3 --seq-len 2048 --gpu a100-sxm-80gb --gpus 4 --reference llama-7b"},
    {"mfu-zh.txt", "mfu --tflops 100 --gpu a100-sxm-80gb --recompute full --lang zh"},
    {"mfu.json", "mfu gpt2 --tokens-per-second 100000 --seq-len 1024 --gpu a100 --recompute full --json"},
    {"mfu-cores.txt", "mfu --cores 1280 --clock-ghz 1.4"},
    {"textbook.txt", "70B --quantization int4 --gpu a100-sxm-80gb --gpus 8"},
    {"textbook-zh.txt", "7B --dtype fp32 --gpu v100-pcie-32gb --lang zh"},
    {"textbook.json", "7B --json"},
    {"textbook-only.txt", "7.5B --gpus 64 --only zero_1"},
    {"models-gpt2.txt", "models gpt2"},
    {"models-gpt2.json", "models gpt2 --json"},
    {"models-mistral-zh.txt", "models --model-type mistral --lang zh"},
    {"gpus-h100.txt", "gpus h100 --sort memory"},
    {"gpus-h100.json", "gpus h100-pcie --json"},
    {"gpus-nvlink-zh.txt", "gpus --nvlink --min-memory 80GB --lang zh --sort bandwidth"},
};

std::string path_of(const std::string& file) { return std::string(ULLAGE_SOURCE_DIR "/tests/golden/") + file; }

std::string content(const std::string& path) {
  std::stringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, IsWhatWasApproved) {
  const testing::Captured captured = testing::run(GetParam().line);
  EXPECT_EQ(captured.status, 0) << captured.err;
  const std::string path = path_of(GetParam().file);
  if (std::getenv("ULLAGE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << captured.out;
  EXPECT_EQ(captured.out, content(path)) << "ullage " << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(kGoldens));

}  // namespace
}  // namespace ullage
